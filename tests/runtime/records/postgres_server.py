"""A PostgreSQL server of its own for a test, in a folder, reached through a socket there."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = ("initdb", "postgres")
SECONDS = 30.0


def programs() -> dict[str, str] | None:
    """Return the paths of the server's programs; None: they are not installed."""
    places = [None, *(str(path) for path in Path("/usr/lib/postgresql").glob("*/bin"))]
    for place in places:
        found = {name: shutil.which(name, path=place) for name in PROGRAMS}
        if all(found.values()):
            return {name: str(path) for name, path in found.items()}
    return None


@contextmanager
def server() -> Iterator[str]:
    """Yield the URL of a database on a fresh server, which ends with the block.

    Root may not run the server: it then runs as ``postgres`` or ``nobody``.
    """
    found, user = programs(), _user()
    assert found is not None
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="pg") as name:
        if user is not None:
            shutil.chown(name, user)
        data = f"{name}/data"
        run = {"user": user, "cwd": name, "stdout": subprocess.DEVNULL, "env": _environment(name)}
        subprocess.run(
            [found["initdb"], "-D", data, "-U", "go", "--no-sync", "-A", "trust", "-E", "UTF8"],
            check=True, stderr=subprocess.DEVNULL, **run,
        )  # fmt: skip
        process = subprocess.Popen(
            [found["postgres"], "-D", data, "-k", name, "-c", "listen_addresses=", "-F"],
            stderr=subprocess.DEVNULL, **run,
        )  # fmt: skip
        try:
            _await(Path(name) / ".s.PGSQL.5432", process)
            yield f"postgresql://go@/postgres?host={name}"
        finally:
            process.terminate()
            process.wait(SECONDS)


def _await(socket: Path, process: subprocess.Popen[bytes]) -> None:
    import psycopg

    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        if socket.exists():
            try:
                psycopg.connect(f"host={socket.parent} user=go dbname=postgres").close()
            except psycopg.OperationalError:
                pass
            else:
                return
        time.sleep(0.05)
    raise RuntimeError("the PostgreSQL server does not start")


def _user() -> str | None:
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def _environment(folder: str) -> dict[str, str]:
    return {**os.environ, "HOME": folder, "LC_ALL": "C"}
