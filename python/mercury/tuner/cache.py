"""Results of searches, kept on disk and shared as files."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .store import CacheError, CacheWarning, Store

__all__ = ["Cache", "Entry", "default_path"]

_FORMAT, _FORMAT_VERSION = "mercury-tuning", 1


def default_path() -> Path:
    """Give where the cache is.

    In ``$MERCURY_CACHE_DIR`` when it is set, else in ``mercury`` of ``$XDG_CACHE_HOME``,
    which is ``~/.cache`` when not set.
    """
    own = os.environ.get("MERCURY_CACHE_DIR")
    if own:
        return Path(own) / "tuning.sqlite"
    # The XDG specification says to ignore a path that is not absolute.
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "mercury/tuning.sqlite"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What a search found.

    Attributes
    ----------
    key
        Of the question; see `mercury.tuner.key.Key`.
    label
        The question in a line, for people.
    question
        All that the key covers.
    answer
        The chosen schedule and the Pareto set.
    created
        Seconds since 1970.
    """

    key: str
    label: str
    question: Mapping[str, Any]
    answer: Mapping[str, Any]
    created: float

    def text(self) -> str:
        """Give the entry as JSON, always the same for the same entry."""
        return json.dumps(
            {
                "key": self.key,
                "label": self.label,
                "question": dict(self.question),
                "answer": dict(self.answer),
                "created": self.created,
            },
            sort_keys=True,
        )

    @classmethod
    def of(cls, value: Any, where: str) -> Entry:
        """Check an entry that was read.

        Raises
        ------
        CacheError
            When it is none.
        """
        kinds = {"key": str, "label": str, "question": dict, "answer": dict, "created": float}
        if not isinstance(value, dict):
            raise CacheError(f"{where}: expected an entry, got {value!r:.60}")
        for name, kind in kinds.items():
            if not isinstance(value.get(name), kind):
                raise CacheError(
                    f"{where}: '{name}' of an entry must be of type {kind.__name__}, got "
                    f"{value.get(name)!r:.60}"
                )
        return cls(**{name: value[name] for name in kinds})

    @property
    def digest(self) -> str:
        """The hash of the answer: equal on ranks that have the same one."""
        text = json.dumps(dict(self.answer), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class Cache:
    """Results of searches by their key, safe with many processes.

    Parameters
    ----------
    path
        The file; `default_path` when not given.

    Examples
    --------
    >>> import tempfile
    >>> cache = Cache(Path(tempfile.mkdtemp()) / "tuning.sqlite")
    >>> cache.put(Entry(key="k", label="", question={}, answer={"recipe": ""}, created=0.0))
    >>> cache.get("k").answer, cache.get("other")
    ({'recipe': ''}, None)
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = default_path() if path is None else Path(path)
        self._store = Store(self.path)

    # -- answers --------------------------------------------------------------

    def get(self, key: str) -> Entry | None:
        """Give the entry of a key; None when there is none, or it was damaged."""

        def work(database: sqlite3.Connection) -> Any:
            query = "SELECT text, digest FROM entries WHERE key = ?"
            return database.execute(query, (key,)).fetchone()

        found = self._store.read(work)
        return None if found is None else self._entry(key, *found)

    def put(self, entry: Entry, *, ended: bool = True) -> None:
        """Keep an entry, in place of another of its key.

        Parameters
        ----------
        entry
            The entry.
        ended
            Whether its search ended; then its progress is forgotten.
        """
        self.put_all([entry], ended=ended)

    def put_all(self, entries: Iterable[Entry], *, ended: bool = True) -> None:
        """Keep several entries, all or none."""
        rows = [(e.key, e.created, e.text(), _digest(e.text())) for e in entries]

        def work(database: sqlite3.Connection) -> None:
            database.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?)", rows)
            if ended:
                keys = [(key,) for key, *_ in rows]
                database.executemany("DELETE FROM progress WHERE key = ?", keys)

        self._store.write(work)

    def entries(self) -> list[Entry]:
        """Give all entries, the oldest first."""

        def work(database: sqlite3.Connection) -> list[Any]:
            query = "SELECT key, text, digest FROM entries ORDER BY created, key"
            return database.execute(query).fetchall()

        found = [self._entry(*row) for row in self._store.read(work)]
        return [entry for entry in found if entry is not None]

    def drop(self, key: str) -> bool:
        """Forget an entry and its progress; whether there was one."""

        def work(database: sqlite3.Connection) -> bool:
            database.execute("DELETE FROM progress WHERE key = ?", (key,))
            done = database.execute("DELETE FROM entries WHERE key = ?", (key,))
            return done.rowcount > 0

        return self._store.write(work)

    def clear(self) -> int:
        """Forget everything; how many entries there were."""

        def work(database: sqlite3.Connection) -> int:
            database.execute("DELETE FROM progress")
            return database.execute("DELETE FROM entries").rowcount

        return self._store.write(work)

    def find(self, prefix: str) -> Entry:
        """Give the entry whose key begins so.

        Raises
        ------
        CacheError
            When there is none, or more than one.
        """
        found = [entry for entry in self.entries() if entry.key.startswith(prefix)]
        if len(found) != 1:
            raise CacheError(
                f"{len(found) or 'no'} entries have a key that begins with '{prefix}'; "
                "mercury cache list shows all"
            )
        return found[0]

    def _entry(self, key: str, text: str, digest: str) -> Entry | None:
        try:
            if _digest(text) != digest:
                raise CacheError("its text does not fit its hash")
            return Entry.of(json.loads(text), str(self.path))
        except (CacheError, json.JSONDecodeError) as error:
            warnings.warn(
                f"entry '{key}' of the cache {self.path} is damaged and not used: {error}",
                CacheWarning,
                stacklevel=3,
            )
            return None

    # -- searches that were stopped -------------------------------------------

    def progress(self, key: str) -> dict[str, Any]:
        """Give what a search that did not end found out, by the name of each result."""

        def work(database: sqlite3.Connection) -> list[Any]:
            query = "SELECT name, text, digest FROM progress WHERE key = ?"
            return database.execute(query, (key,)).fetchall()

        return {
            name: json.loads(text)
            for name, text, digest in self._store.read(work)
            if _digest(text) == digest
        }

    def add_progress(self, key: str, results: Mapping[str, Any]) -> None:
        """Keep results of a search that has not ended."""
        rows = []
        for name, value in results.items():
            text = json.dumps(value, sort_keys=True)
            rows.append((key, name, text, _digest(text)))

        def work(database: sqlite3.Connection) -> None:
            database.executemany("INSERT OR REPLACE INTO progress VALUES (?, ?, ?, ?)", rows)

        if rows:
            self._store.write(work)

    # -- files ----------------------------------------------------------------

    def export(self, path: str | Path, keys: Iterable[str] | None = None) -> int:
        """Write entries to a file that `load` reads, here or elsewhere.

        Parameters
        ----------
        path
            The file; replaced as a whole.
        keys
            Of the entries; all when not given.

        Returns
        -------
        int
            How many were written.
        """
        wanted = None if keys is None else set(keys)
        chosen = [e for e in self.entries() if wanted is None or e.key in wanted]
        write_entries(path, chosen)
        return len(chosen)

    def load(self, path: str | Path) -> int:
        """Read entries from a file; all or none.

        Returns
        -------
        int
            How many there were.

        Raises
        ------
        CacheError
            When the file is not one of entries.
        """
        found = read_entries(path)
        self.put_all(found)
        return len(found)


def write_entries(path: str | Path, entries: Iterable[Entry]) -> None:
    """Write entries to a file."""
    content = {
        "format": _FORMAT,
        "version": _FORMAT_VERSION,
        "entries": [json.loads(entry.text()) for entry in entries],
    }
    target = Path(path)
    beside = target.with_name(f"{target.name}.{os.getpid()}-{time.time_ns()}")
    try:
        beside.write_text(
            json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8"
        )
        beside.replace(target)
    except OSError as error:
        raise CacheError(f"'{target}' cannot be written: {error}") from None


def read_entries(path: str | Path) -> list[Entry]:
    """Read the entries of a file; see `Cache.load`."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CacheError(f"'{path}' cannot be read as entries: {error}") from None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise CacheError(f"'{path}' is not a file of entries: 'format' must be '{_FORMAT}'")
    if content.get("version") != _FORMAT_VERSION:
        raise CacheError(
            f"'{path}': 'version' must be {_FORMAT_VERSION}, got {content.get('version')!r}"
        )
    entries = content.get("entries")
    if not isinstance(entries, list):
        raise CacheError(f"'{path}': 'entries' must be a list, got {entries!r:.60}")
    return [Entry.of(value, str(path)) for value in entries]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
