"""The cache's folder by itself: digests by stat, entries by rename, locks, leftovers."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from cuvil.engine import cache_files
from cuvil.engine.cache_files import indexed_digest
from cuvil.engine.cache_store import LEFTOVER_S, Store, default_root


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cache")


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that were read to hash them."""
    names: list[str] = []
    real = cache_files.digest_file

    def digest(path: str) -> str:
        names.append(os.path.basename(path))
        return real(path)

    monkeypatch.setattr(cache_files, "digest_file", digest)
    return names


def aged(path: Path, seconds: float, content: bytes = b"one") -> Path:
    """A file that was last changed so long ago, as far as its mtime tells."""
    path.write_bytes(content)
    then = time.time() - seconds
    os.utime(path, (then, then))
    return path


def test_a_settled_file_is_hashed_once(
    store: Store, tmp_path: Path, hashed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_files, "SETTLED_NS", 0)
    path = aged(tmp_path / "a", 10)
    assert indexed_digest(store, path) == indexed_digest(store, path)
    assert hashed == ["a"]
    aged(path, 10, b"two")
    assert indexed_digest(store, path) == cache_files.digest_bytes(b"two")
    assert hashed == ["a", "a"]


def test_a_file_that_just_changed_is_hashed_again(
    store: Store, tmp_path: Path, hashed: list[str]
) -> None:
    path = aged(tmp_path / "a", 10)  # its ctime is now, whatever its mtime says
    indexed_digest(store, path)
    indexed_digest(store, path)
    assert hashed == ["a", "a"]


def test_entries_appear_whole(store: Store) -> None:
    with store.staging() as folder:
        (folder / "x").write_text("1")
        assert not store.entries()
        place = store.commit(folder, "name")
    assert (place / "x").read_text() == "1"
    assert [(e.name, e.bytes) for e in store.entries()] == [("name", 1)]


def test_the_first_of_two_equal_entries_stays(store: Store) -> None:
    for text in "12":
        with store.staging() as folder:
            (folder / "x").write_text(text)
            place = store.commit(folder, "name")
    assert (place / "x").read_text() == "1"
    assert not list((store.root / "tmp").iterdir())


def test_a_lock_is_held_by_one(store: Store) -> None:
    inside: list[int] = []
    overlaps: list[int] = []

    def work() -> None:
        with store.lock("name") as mine:
            assert mine
            inside.append(1)
            overlaps.append(len(inside))
            time.sleep(0.02)
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert overlaps == [1] * 4


def test_waiting_for_a_lock_ends(store: Store) -> None:
    told: list[bool] = []
    with store.lock("name") as first, store.lock("name", 0.1, lambda: told.append(True)) as second:
        assert (first, second, told) == (True, False, [True])


def test_old_leftovers_are_swept(store: Store) -> None:
    old, new = (store.root / "tmp" / name for name in ("old", "new"))
    for folder in (old, new):
        folder.mkdir(parents=True)
    then = time.time() - LEFTOVER_S - 1
    os.utime(old, (then, then))
    store.prune(0)
    assert not old.exists() and new.exists()


def test_clear_removes_everything(store: Store) -> None:
    store.write_record("files", "a", {"x": 1})
    assert store.read_record("files", "a") == {"x": 1}
    with store.staging() as folder:
        store.commit(folder, "name")
    store.clear()
    assert not store.entries() and store.read_record("files", "a") is None


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CUVIL_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    assert default_root() == Path("/home/me/.cache/cuvil")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert default_root() == Path("/caches/cuvil")
    monkeypatch.setenv("CUVIL_CACHE_DIR", "/mine")
    assert default_root() == Path("/mine")
