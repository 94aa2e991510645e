"""The database of a path or URL, and its errors in words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy import exc
from sqlalchemy.pool import NullPool

from go_rl.core.errors import MissingDependencyError, RecordError, nearest
from go_rl.core.files.paths import path_of

RECORDS = "records.sqlite"
"""The database of a folder."""
LOCK_SECONDS = 60.0
"""Longest wait for another process that has an SQLite file locked."""
INSTALL = {"psycopg": ": pip install 'go_rl[postgres]' -c constraints.txt"}
"""Installation of the drivers that go_rl is tried with, by driver."""
DATABASES = ("sqlite", "postgresql", "mysql", "mariadb", "oracle", "mssql")


def public_name(url: str | Path) -> str:
    """Return the name of a database in messages: a path as it is, a URL without user, password and
    options; of a malformed one only its kind."""
    if _is_path(url):
        return str(url)
    try:
        parsed = sql.make_url(_without_user(str(url)))
    except (exc.ArgumentError, ValueError):
        return f"{str(url).partition('://')[0]}://..."
    place = parsed.database or ""
    if parsed.host:
        port = f":{parsed.port}" if parsed.port else ""
        place = f"{parsed.host}{port}/{place}"
    return f"{parsed.drivername}://{place if parsed.host else '/' + place}"


def database_of(source: str | Path) -> str | Path:
    """Return the URL or the file that is named; of a folder, the file in it."""
    if isinstance(source, str) and not _is_path(source):
        return source
    path = path_of(source, "a store of records", RecordError)
    return path / RECORDS if path.is_dir() else path


def open_engine(url: str | Path) -> tuple[sql.Engine, Path | None]:
    """Return the engine of a database, not yet connected, and the file where SQLite keeps one.

    A file is opened anew for each use: it may be deleted or replaced between two.

    Raises:
        MissingDependencyError: the driver of the database is not installed.
        RecordError: the URL is malformed, or names a kind of database that does not exist, or a
            password with an @.
    """
    where, parsed = public_name(url), _parse(url)
    if parsed.get_backend_name() == "sqlite" and parsed.query:
        raise RecordError(f"{where}: options of an SQLite file are not read; leave them out")
    options: dict[str, Any] = {}
    if parsed.get_backend_name() == "postgresql":
        options["client_encoding"] = "utf8"  # else text of an SQL_ASCII database comes as bytes
    file = None
    if parsed.get_backend_name() == "sqlite":
        options["connect_args"] = {"timeout": LOCK_SECONDS}
        if parsed.database not in (None, "", ":memory:"):
            file = Path(str(parsed.database))
            options["poolclass"] = NullPool
    try:
        engine = sql.create_engine(parsed, **options)
    except exc.NoSuchModuleError:
        name = parsed.get_backend_name()
        raise RecordError(
            f"{where}: unknown database {name!r}{nearest(name, DATABASES)} Use one that SQLAlchemy "
            "knows, or the path of an SQLite file"
        ) from None
    except exc.ArgumentError:
        raise _malformed(where) from None
    except ImportError as error:
        how = INSTALL.get(str(error.name), " pip; go_rl is tried with SQLite and PostgreSQL only")
        raise MissingDependencyError(
            f"{where} needs the database driver {error.name!r}; install it with{how}"
        ) from error
    if _credentials(str(url)).count("@") > 1:
        raise RecordError(f"{where}: its address has several @; write %40 for those of a password")
    return engine, file


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Turn a database's errors into a `RecordError`; ``where`` starts the sentence."""
    try:
        yield
    except exc.OperationalError as error:
        raise RecordError(
            f"{where}: cannot be used ({_said(error)}); check that it may be read and written and "
            "that no other program keeps it locked"
        ) from error
    except exc.DBAPIError as error:
        raise RecordError(
            f"{where}: not a database of records, or a damaged one ({_said(error)}); name one that "
            "go_rl made, or a new file"
        ) from error
    except (exc.SQLAlchemyError, OSError, TypeError) as error:
        raise RecordError(
            f"{where}: cannot be opened ({error}); name an SQLite file or a database URL"
        ) from error


def _credentials(url: str) -> str:
    """User and password of a URL with the last @ behind them; nothing where there are none."""
    kind, _, rest = url.partition("://")
    return "" if not rest or kind.startswith("sqlite") else rest[: rest.rfind("@") + 1]


def _without_user(url: str) -> str:
    return url.replace(_credentials(url), "", 1)


def _is_path(url: str | Path) -> bool:
    return isinstance(url, Path) or "://" not in url


def _parse(url: str | Path) -> sql.URL:
    if _is_path(url):
        return sql.URL.create("sqlite", database=str(Path(url).absolute()))
    try:
        parsed = sql.make_url(str(url))
    except (exc.ArgumentError, ValueError):
        raise _malformed(public_name(url)) from None
    if parsed.drivername == "postgresql":  # SQLAlchemy's default is the driver before psycopg 3
        return parsed.set(drivername="postgresql+psycopg")
    return parsed


def _malformed(where: str) -> RecordError:
    """SQLAlchemy's message may contain the URL with its password."""
    return RecordError(
        f"{where}: not a database URL; write the path of an SQLite file, or "
        "postgresql://user:password@host/name"
    )


def _said(error: exc.DBAPIError) -> str:
    return " ".join(str(error.orig).split())
