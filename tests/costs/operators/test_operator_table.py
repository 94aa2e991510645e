"""Operators measured, and what their prices leave of convolutions."""

import gzip

import numpy as np
import pytest

from go_rl.costs.operators.conv_residuals import (
    LARGEST,
    SIZES,
    TERMS,
    fit_residuals,
    residuals,
    terms,
)
from go_rl.costs.operators.tables import OperatorError, OperatorRows, read_operators
from go_rl.costs.operators.tables.operator_rows import SIZES as ALL_SIZES

HEAD = (
    "op,batch,rows,depth,columns,width,"
    "input_channel,output_channel,kernel_size,input_size,stride,padding"
)


def table(tmp_path, *lines: str, head: str = HEAD) -> str:
    path = tmp_path / "operators.csv"
    path.write_text("\n".join([head, *lines]) + "\n")
    return str(path)


def test_sizes_flops_and_bytes(tmp_path):
    rows = read_operators(table(
        tmp_path, "bmm,2,3,5,7,,,,,,,", "linear,2,3,5,7,,,,,,,", "add,4,,,,6,,,,,,",
        "softmax,4,,,,6,,,,,,", "conv,2,,,,,3,4,3,8,1,1",
    ))  # fmt: skip
    assert rows.op.tolist() == ["bmm", "linear", "add", "softmax", "conv"]
    np.testing.assert_array_equal(rows.flops(), [420, 420, 24, 24, 2 * 2 * 64 * 4 * 27])
    conv_bytes = 4 * (2 * 3 * 64 + 27 * 4 + 2 * 64 * 4)
    np.testing.assert_array_equal(
        rows.least_bytes(),
        [4 * 2 * (15 + 35 + 21), 4 * (30 + 35 + 42), 4 * 3 * 24, 4 * 2 * 24, conv_bytes],
    )


def test_cells_of_other_operators_may_be_zero(tmp_path):
    rows = read_operators(table(tmp_path, "bmm,2,3,5,7,0,0,0.0,0,0,0,0", "add,4,0,,0,6,,0,,,,"))
    assert rows.op.tolist() == ["bmm", "add"]
    assert rows.sizes["width"].tolist() == [0, 6]


def test_packed_tables_and_measured_columns_are_read(tmp_path):
    path = tmp_path / "operators.csv.gz"
    path.write_bytes(gzip.compress(b"latency_ms,device,op,B,H\n0.1,Tesla T4,relu,8.0,16\n"))
    rows = read_operators(path)
    assert (rows.sizes["batch"].tolist(), rows.sizes["width"].tolist()) == ([8], [16])


ATTENTION = "op,batch,heads,groups,queries,keys,depth,causal"
GROUPED = "op,batch,input_channel,output_channel,kernel_size,input_size,stride,padding,groups"


@pytest.mark.parametrize(
    ("head", "lines", "message"),
    [
        *((HEAD, (line,), message) for line, message in (
            ("bmn,2,3,5,7,,,,,,,", "line 2: unknown operator 'bmn'; did you mean 'bmm'"),
            ("bmm,2,-3,5,7,,,,,,,", "line 2: bmm: rows must be a positive whole number, not -3"),
            ("bmm,2,0,5,7,,,,,,,", "rows must be a positive whole number, not 0"),
            ("bmm,2,,5,7,,,,,,,", "line 2: bmm: rows is missing"),
            ("bmm,2,2.5,5,7,,,,,,,", "rows must be a positive whole number, not 2.5"),
            ("bmm,2,nan,5,7,,,,,,,", "rows must be a positive whole number, not nan"),
            ("bmm,2,many,5,7,,,,,,,", "rows must be a number, not 'many'"),
            ("bmm,1e12,1e12,5,1e12,,,,,,,", "its result has 1e.36 elements, too many"),
            ("conv,2,,,,,3,4,9,2,1,1", "kernel_size 9 is larger than the padded input, 4"),
            ("conv,2,,,,,3,4,3,2,1,-1", "padding must be zero or a positive whole number"),
            ("bmm,1e15,3,5,7,,,,,,,", "batch must be at most 1,099,511,627,776, not 1e15"),
            ("BMM,2,3,5,7,,,,,,,", "unknown operator 'BMM'; did you mean 'bmm'"),
            ("add,2,3", "has 3 cells, the head 12"))),
        (HEAD, (), "has no operators"),
        ("", (), "is empty"),
        ("B,H", ("1,2",), "has no column 'op'"),
        ("op,B", ("add,1",), "add needs the column 'width', which is missing"),
        ("op,bath,H", ("add,1,2",), "unknown column 'bath'; did you mean 'batch'"),
        (",op,B,H", ("0,add,1,2",), "column 1 has no name; .*index=False"),
        ("op,B,H,Q", ("add,1,2,3",), "unknown column 'Q'"),
        ("op,B,H,B", ("add,1,2,3",), "column 'batch' is there twice"),
        ("op,B,H,dtype", ("add,1,2,float16",), "not by row as 'float16'"),
        (ATTENTION, ("attention,8,32,5,16,16,64,1",), "heads 32 is no multiple of groups 5"),
        (ATTENTION, ("attention,8,32,4,16,16,64,2",), "causal must be 0 or 1, not 2"),
        (GROUPED, ("grouped,1,6,8,3,9,1,1,4",), "input_channel 6 is no multiple of groups 4"),
        (GROUPED, ("grouped,1,8,6,3,9,1,1,4",), "output_channel 6 is no multiple of groups 4"),
        (GROUPED, ("conv,1,8,8,3,9,1,1,4",), "line 2: conv: it has no groups, but the cell has '4';"
         " leave it empty, or name the operator 'grouped'"),
        (HEAD, ("bmm,2,3,5,7,77,,,,,,",), "bmm: it has no width, but the cell has '77'; leave it"),
        (HEAD, ("add,2,,,many,77,,,,,,",), "add: it has no columns, but the cell has 'many'"),
        *((HEAD, (f"{op},2,,,,,3,4,3,9,1,1",),
           f"{op}: input_channel 3 and output_channel 4 must be equal")
          for op in ("depthwise", "pool", "batchnorm")),
    ],
)  # fmt: skip
def test_wrong_tables_are_one_clear_error(head, lines, message, tmp_path):
    with pytest.raises(OperatorError, match=message):
        read_operators(table(tmp_path, *lines, head=head))


def test_an_absent_file_is_one_clear_error(tmp_path):
    with pytest.raises(OperatorError, match="cannot be read"):
        read_operators(tmp_path / "none.csv")


def _rows(count: int) -> OperatorRows:
    rng = np.random.default_rng(0)
    sizes = {name: np.exp2(rng.integers(2, 9, count)).astype(np.int64) for name in ALL_SIZES}
    sizes |= {"kernel_size": rng.choice((1, 3, 5, 7), count), "stride": rng.choice((1, 2), count)}
    return OperatorRows(np.full(count, "conv"), sizes)


def test_terms_by_hand():
    """32 images of 32 × 32, channels 64 to 128, 3 × 3: all at the centre but the filters."""
    one = _rows(1)
    for name, size in zip(SIZES, (32, 32, 64, 128, 3, 1), strict=True):
        one.sizes[name][0] = size
    found = terms(one)[0]
    assert len(found) == TERMS == 28
    assert found.tolist() == [1, 0, 0, 0, 0.5, 0, 0, *[0] * 15, 0.25, *[0] * 5]


def test_each_row_may_have_coefficients_of_its_own():
    rows, each = _rows(2), np.zeros((2, TERMS))
    each[1, 0] = 0.3
    assert residuals(each, rows).tolist() == [0.0, 0.3]


def test_a_quadratic_rest_is_found_again_without_the_gpu_left_out():
    rows = _rows(600)
    truth = np.zeros(TERMS)
    truth[[0, 1, 7]] = 0.1, -0.1, 0.05
    rest, weight = terms(rows) @ truth, np.ones(600)
    rest[:200], weight[:200] = 5.0, 0.0
    found = fit_residuals(rows, rest, weight)
    np.testing.assert_allclose(found, truth, atol=0.02)


def test_a_correction_is_bounded():
    far = np.zeros(TERMS)
    far[0] = 3.0
    assert residuals(far, _rows(3)).tolist() == [LARGEST] * 3
    assert residuals(-far, _rows(3)).tolist() == [-LARGEST] * 3
