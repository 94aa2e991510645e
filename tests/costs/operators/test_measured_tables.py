"""Folders of measured operators: what is read, and each mistake as one error with its place."""

import gzip

import pytest

from go_rl.core import GoRLError, TrainingError
from go_rl.costs.devices import DeviceError
from go_rl.costs.operators.measured_tables import read_measured

HEAD = "batch,width,latency_ms,device"


def folder(tmp_path, *lines, head=HEAD, name="relu.csv"):
    (tmp_path / name).write_text("\n".join([head, *lines]) + "\n")
    return tmp_path


def test_letters_spaces_and_a_mark_of_the_encoding_are_read(tmp_path):
    """Milliseconds are read as seconds; times in a graph are not a number without their column."""
    (tmp_path / "relu.csv").write_text("\ufeffB, H,latency_ms,device\n8, 16.0,0.5,t4\n\n")
    found = read_measured(tmp_path)
    sizes = found.inputs.rows.sizes
    assert (sizes["batch"].tolist(), sizes["width"].tolist()) == ([8], [16])
    assert found.seconds.tolist() == [0.5e-3]
    assert str(found.in_graph.tolist()) == "[nan]"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("64,512,0.03,t4", "64,-512,0.03,t4"),
         "line 3: relu: width must be a positive whole number, not -512"),
        (("64,0,0.03,t4",), "line 2: relu: width must be a positive whole number, not 0"),
        (("64,nan,0.03,t4",), "width must be a positive whole number, not nan"),
        (("64,512.9,0.03,t4",), "width must be a positive whole number, not 512.9"),
        (("64,,0.03,t4",), "line 2: relu: width is missing"),
        (("64,512,abc,t4",), "line 2: latency_ms must be a positive number .*, not 'abc'"),
        (("64,512,-1,t4",), "line 2: latency_ms must be a positive number .*, not '-1'"),
        (("64,512,inf,t4",), "latency_ms must be a positive number of milliseconds, not 'inf'"),
        (("64,512,,t4",), "latency_ms must be a positive number of milliseconds, not ''"),
        (("64,512",), "line 2: has 2 cells, the head 4"),
        ((), "has no rows, only a head"),
    ],
)  # fmt: skip
def test_a_wrong_cell_is_named_by_file_line_and_column(lines, message, tmp_path):
    with pytest.raises(TrainingError, match=r"relu\.csv: ") as caught:
        read_measured(folder(tmp_path, *lines))
    caught.match(message)


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("batch,latency_ms,device", "has no column 'width'"),
        ("batch,width,device", "has no column 'latency_ms'"),
        ("batch,widht,latency_ms,device", "unknown column 'widht'; did you mean 'width'"),
        ("batch,width,latency_ms,device,width", "column 'width' is there twice"),
        ("", "is empty; its first line names the columns"),
    ],
)
def test_a_wrong_head_is_one_clear_error(head, message, tmp_path):
    with pytest.raises(TrainingError, match=rf"relu\.csv: {message}"):
        read_measured(folder(tmp_path, head=head))


def test_an_unknown_device_is_named_with_its_line(tmp_path):
    with pytest.raises(DeviceError, match=r"relu\.csv: line 3: device: .*did you mean 't4'"):
        read_measured(folder(tmp_path, "64,512,0.03,t4", "64,512,0.03,t44"))


def test_an_operator_other_than_the_file_says_is_refused(tmp_path):
    where = folder(tmp_path, "tanh,64,512,0.03,t4", head=f"op,{HEAD}")
    with pytest.raises(TrainingError, match="line 2: op must be 'relu', as the file is named"):
        read_measured(where)


def test_a_table_of_no_operator_is_refused_and_no_table_is_read_twice(tmp_path):
    line = "64,512,0.03,t4"
    folder(tmp_path, line, name="add.csv")
    (tmp_path / "notes.md").write_text("no table")
    folder(tmp_path, line, name="addd.csv")
    with pytest.raises(TrainingError, match=r"addd\.csv: 'addd' is no operator; did you mean"):
        read_measured(tmp_path)
    (tmp_path / "addd.csv").unlink()
    assert len(read_measured(tmp_path).seconds) == 1
    packed = gzip.compress(f"{HEAD}\n{line}\n".encode())
    (tmp_path / "add.csv.gz").write_bytes(packed)
    with pytest.raises(TrainingError, match=r"has add\.csv and add\.csv\.gz; keep one of them"):
        read_measured(tmp_path)


def test_bytes_that_are_no_text_are_one_clear_error(tmp_path):
    (tmp_path / "relu.csv").write_bytes(b"batch\xff,width\n")
    with pytest.raises(GoRLError, match=r"relu\.csv: cannot be read"):
        read_measured(tmp_path)
