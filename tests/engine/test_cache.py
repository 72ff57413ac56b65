"""The compile cache: what it tells apart, what it survives, and that a hit imports no compiler."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import cuvil
from cuvil.engine import cache_files, cache_key, cached
from cuvil.engine.cache_store import Store
from cuvil.rewrite import user
from tests import small_models

X = np.ones((2, 8), np.float32)


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the test's own."""
    place = tmp_path / "cache"
    monkeypatch.setenv("CUVIL_CACHE_DIR", str(place))
    return place


class Stages(list[str]):
    """Records the stages of a compile."""

    @property
    def compiled(self) -> bool:
        return "compile" in self


def compiled(source: object, **options: object) -> tuple[cuvil.Engine, bool]:
    """An engine, and whether anything was compiled for it."""
    stages = Stages()
    engine = cuvil.compile(source, progress=stages.append, **options)  # type: ignore[arg-type]
    return engine, stages.compiled


def entries(root: Path) -> list[Path]:
    folder = root / "entries"
    return sorted(folder.iterdir()) if folder.is_dir() else []


def only_file(root: Path, name: str) -> Path:
    (entry,) = entries(root)
    return entry / name


def test_the_second_compile_is_a_load() -> None:
    made = small_models.dense()
    first, new = compiled(made)
    second, again = compiled(made)
    assert (new, again) == (True, False)
    np.testing.assert_array_equal(first(X), second(X))


def test_a_path_bytes_and_a_message_share_an_entry(tmp_path: Path, root: Path) -> None:
    made = small_models.add()
    path = small_models.saved(made, tmp_path / "add.onnx")
    assert compiled(made, name="add")[1]
    assert not compiled(made.SerializeToString(deterministic=True), name="add")[1]
    path.write_bytes(made.SerializeToString(deterministic=True))
    assert not compiled(path)[1]
    assert len(entries(root)) == 1


def test_models_that_differ_only_in_values_or_bias_are_told_apart() -> None:
    for made in (
        small_models.dense(),
        small_models.dense(seed=1),
        small_models.dense(bias=False),
    ):
        engine, new = compiled(made)
        assert new
        np.testing.assert_allclose(engine(X), small_models.dense_result(made, X), rtol=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {"opt_level": 0},
        {"dims": {"N": 2}},
        {"bounds": {"N": (1, 8)}},
        {"enable_graph_fusion": False},
        {"enable_op_scheduling": False},
        {"disable_rules": ["cse"]},
        {"name": "other"},
        {"input_spec": [("x", "float32", (2, 8))]},
    ],
    ids=str,
)
def test_options_are_part_of_the_key(options: dict[str, object]) -> None:
    made = small_models.dense()
    assert compiled(made)[1]
    assert compiled(made, **options)[1]
    assert not compiled(made, **options)[1]


def test_threads_are_not() -> None:
    made = small_models.dense()
    assert compiled(made, threads=1)[1]
    assert not compiled(made, threads=2)[1]


def test_another_cpu_compiles_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    made = small_models.dense()
    compiled(made)
    monkeypatch.setattr(cache_key, "cpu_identity", lambda: "another")
    assert compiled(made)[1]


def test_another_compiler_compiles_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    made = small_models.dense()
    compiled(made)
    monkeypatch.setattr(cached, "package_state", lambda path: f"edited {path}")
    monkeypatch.setattr("cuvil.engine.cache_versions.tree_digest", lambda path: "edited")
    assert compiled(made)[1]


def test_a_compiler_that_was_edited_after_it_was_loaded_stores_nothing(
    monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    monkeypatch.setattr(cached, "LOADED_NS", 0)
    assert compiled(small_models.add())[1] and not entries(root)


def test_external_data_is_part_of_the_key(tmp_path: Path) -> None:
    for seed in (0, 1, 0):
        made = small_models.dense(seed=seed)
        path = small_models.saved_with_data(made, tmp_path / "m.onnx", "m.data")
        made = small_models.dense(seed=seed)
        for _ in range(2):
            engine, _ = compiled(path)
            np.testing.assert_allclose(engine(X), small_models.dense_result(made, X), rtol=1e-5)
    assert not compiled(path)[1]


def test_user_patterns_stay_out_of_the_cache(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    pattern = user.UserPattern("mine", lambda a, b: a * b + a)
    monkeypatch.setitem(user.PATTERNS, "mine", pattern)
    cuvil.compile(small_models.add(), cache=True)
    assert not entries(root)


@contextmanager
def warned(text: str) -> Iterator[None]:
    """One CacheWarning with this text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        yield
    messages = [str(w.message) for w in caught if issubclass(w.category, cached.CacheWarning)]
    assert len(messages) == 1 and text in messages[0], messages


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [cut, flip, Path.unlink, lambda p: p.write_bytes(b"")])
@pytest.mark.parametrize("name", ["model.o", "weights.bin", "meta.json"])
def test_a_damaged_entry_is_made_anew(root: Path, name: str, damage: object) -> None:
    made = small_models.dense()
    compiled(made)
    damage(only_file(root, name))  # type: ignore[operator]
    with warned("damaged entry"):
        engine, new = compiled(made)
    assert new
    np.testing.assert_allclose(engine(X), small_models.dense_result(made, X), rtol=1e-5)
    assert not compiled(made)[1]


def test_a_damaged_record_is_only_a_miss(root: Path) -> None:
    made = small_models.dense()
    compiled(made)
    for record in (root / "records").rglob("*.json"):
        cut(record)
    assert compiled(made)[1]


def test_a_large_file_is_hashed_again_when_its_time_changed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached, "ALWAYS_HASHED", 0)
    made = small_models.dense()
    compiled(made)
    hashed: list[str] = []
    monkeypatch.setattr(
        cached, "digest_file", lambda p: hashed.append(p.name) or cache_files.digest_file(p)
    )
    assert not compiled(made)[1] and not hashed
    os.utime(only_file(root, "weights.bin"))
    assert not compiled(made)[1] and hashed == ["weights.bin"]


SCRIPT = """
import sys
import numpy as np
import cuvil
stages = []
engine = cuvil.compile(sys.argv[1], progress=stages.append)
loaded = [m for m in ("onnx", "xdsl", "llvmlite") if m in sys.modules]
print(sum(engine(np.ones((2, 8), np.float32)).ravel()), "compile" in stages, loaded)
"""


def start(path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", "-c", SCRIPT, str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_four_processes_at_once_compile_once(tmp_path: Path, root: Path) -> None:
    made = small_models.dense()
    path = small_models.saved(made, tmp_path / "m.onnx")
    children = [start(path) for _ in range(4)]
    lines = [child.communicate(timeout=120)[0] for child in children]
    assert all(child.returncode == 0 for child in children)
    expected = small_models.dense_result(made, X).sum()
    assert [float(line.split()[0]) for line in lines] == pytest.approx([expected] * 4, rel=1e-5)
    assert sum(" True " in line for line in lines) == 1
    assert len(entries(root)) == 1


def test_a_hit_imports_no_compiler(tmp_path: Path) -> None:
    path = small_models.saved(small_models.dense(), tmp_path / "m.onnx")
    compiled(path)
    line, _ = start(path).communicate(timeout=120)
    assert line.endswith("False []\n")


def test_a_killed_compile_leaves_no_entry_and_no_lock(tmp_path: Path, root: Path) -> None:
    path = small_models.saved(small_models.dense(), tmp_path / "m.onnx")
    child = start(path)
    end = time.monotonic() + 60
    while not (root / "locks").is_dir() and time.monotonic() < end:
        time.sleep(0.005)
    child.kill()
    child.communicate()
    assert not entries(root)
    assert compiled(path)[1]


def test_a_model_file_that_changed_is_read_again(tmp_path: Path) -> None:
    path = small_models.saved(small_models.dense(), tmp_path / "m.onnx")
    compiled(path)
    other = small_models.dense(seed=1)
    path.write_bytes(other.SerializeToString())
    engine, new = compiled(path)
    assert new
    np.testing.assert_allclose(engine(X), small_models.dense_result(other, X), rtol=1e-5)


def test_a_cache_that_cannot_be_made_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUVIL_CACHE_DIR", os.devnull)
    with warned("the compile cache is not used"):
        assert compiled(small_models.dense())[1]


@pytest.mark.parametrize("part", ["staging", "lock"])
def test_a_full_or_read_only_disk_is_survived(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> object:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Store, part, refuse)
    made = small_models.dense()
    with warned("No space left"):
        engine, new = compiled(made)
    assert new
    np.testing.assert_allclose(engine(X), small_models.dense_result(made, X), rtol=1e-5)


def test_a_folder_that_others_can_write_is_refused(root: Path) -> None:
    root.mkdir()
    root.chmod(0o777)
    with warned("writable by others"):
        compiled(small_models.add())
    assert not entries(root)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
def test_a_folder_that_another_user_made_or_leads_to_is_refused(root: Path) -> None:
    """As happens below /tmp, where anybody may be first."""
    root.mkdir()
    try:
        os.chown(root, 65534, 65534)
    except OSError:
        pytest.skip("the sandbox knows one user only")
    with warned("belongs to another user"):
        compiled(small_models.add())
    root.rmdir()
    (root.parent / "mine").mkdir(mode=0o700)
    root.symlink_to("mine")
    os.chown(root, 65534, 65534, follow_symlinks=False)
    with warned("belongs to another user"):
        compiled(small_models.add())
    assert not list((root.parent / "mine").iterdir())


def test_the_folder_becomes_private(root: Path) -> None:
    root.mkdir(mode=0o755)
    compiled(small_models.add())
    assert root.stat().st_mode & 0o777 == 0o700
    assert len(entries(root)) == 1


def test_the_least_recently_used_go_first(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    store = Store(root)
    for seed in (0, 1):
        compiled(small_models.dense(seed=seed))
        time.sleep(0.02)
    first = store.entries()[-1]
    assert not compiled(small_models.dense(seed=0))[1]
    assert store.entries()[0].name == first.name
    monkeypatch.setenv("CUVIL_CACHE_BYTES", str(int(first.bytes * 2.5)))
    compiled(small_models.dense(seed=2))
    assert len(entries(root)) == 2
    assert not compiled(small_models.dense(seed=0))[1]
    assert compiled(small_models.dense(seed=1))[1]
