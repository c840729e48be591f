"""One SQLite file that many processes share, of which any may die at any moment.

The journal is a rollback journal with full synchronisation: a write is whole or not there
after a kill at any byte. A write-ahead log would want shared memory between all processes
that have the file open, which a network file system, where home folders of clusters live,
does not give. Each operation opens the file anew, so a fork in between does no harm.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from ..errors import MercuryError

__all__ = ["CacheError", "CacheWarning", "Store"]

T = TypeVar("T")
_VERSION = 1
_WAIT_S = 60.0
_TABLES = """
CREATE TABLE IF NOT EXISTS entries (
    key TEXT PRIMARY KEY, created REAL NOT NULL, text TEXT NOT NULL, digest TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS progress (
    key TEXT NOT NULL, name TEXT NOT NULL, text TEXT NOT NULL, digest TEXT NOT NULL,
    PRIMARY KEY (key, name)
) WITHOUT ROWID;
"""
# What SQLite says of a file that is not, or no longer, a database.
_BROKEN = ("not a database", "malformed", "corrupt", "no such table", "no such column")


class CacheError(MercuryError):
    """The cache cannot be used, or a file does not fit it."""


class CacheWarning(UserWarning):
    """Something of the cache was lost or is not used; the search goes on without."""


class Store:
    """The tables of a cache file.

    Parameters
    ----------
    path
        The file; made with its folder when it is not there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run queries in one transaction.

        Raises
        ------
        CacheError
            When the file cannot be used.
        """
        return self._run(work, "BEGIN")

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run changes in one transaction: all of them happen or none.

        Raises
        ------
        CacheError
            When the file cannot be used.
        """
        return self._run(work, "BEGIN IMMEDIATE")

    def _run(self, work: Callable[[sqlite3.Connection], T], begin: str) -> T:
        for attempt in range(3):
            seen = self._identity()
            try:
                with closing(self._open()) as database:
                    database.execute(begin)
                    result = work(database)
                    database.execute("COMMIT")
                    return result
            except (sqlite3.Error, OSError) as error:
                if attempt == 2 or not _is_broken(error):
                    raise CacheError(
                        f"the cache {self.path} cannot be used: {error}; mend or remove it, "
                        "or set MERCURY_CACHE_DIR to another folder"
                    ) from error
                self._move_aside(seen, error)
        raise AssertionError

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(self.path, timeout=_WAIT_S, isolation_level=None)
        try:
            database.execute("PRAGMA journal_mode = DELETE")
            database.execute("PRAGMA synchronous = FULL")
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version == 0:
                database.execute("BEGIN IMMEDIATE")
                for statement in filter(str.strip, _TABLES.split(";")):
                    database.execute(statement)
                database.execute(f"PRAGMA user_version = {_VERSION}")
                database.execute("COMMIT")
            elif version != _VERSION:
                raise CacheError(
                    f"the cache {self.path} has format {version}, this version reads "
                    f"{_VERSION}; set MERCURY_CACHE_DIR to another folder"
                )
        except BaseException:
            database.close()
            raise
        return database

    def _identity(self) -> tuple[int, int] | None:
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _move_aside(self, seen: tuple[int, int] | None, error: Exception) -> None:
        """Rename a broken file, with its journal: it would be played into the next one."""
        with self._lock():
            if self._identity() != seen:
                return  # another process did
            aside = self.path.with_name(
                f"{self.path.name}.broken-{time.time_ns()}-{os.getpid()}"
            )
            journal = self.path.with_name(f"{self.path.name}-journal")
            if journal.exists():
                journal.rename(aside.with_name(f"{aside.name}-journal"))
            self.path.rename(aside)
        warnings.warn(
            f"the cache {self.path} was broken ({error}); it is now {aside}, and a new one "
            "is begun",
            CacheWarning,
            stacklevel=6,
        )

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with self.path.with_name(f"{self.path.name}.lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _is_broken(error: Exception) -> bool:
    return isinstance(error, sqlite3.DatabaseError) and any(
        text in str(error) for text in _BROKEN
    )
