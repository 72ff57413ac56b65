"""Loading: files, weights from everywhere, options, damage, a light import, forks."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import cuvil_runtime as rt
from cuvil_runtime._runtime import ABI_VERSION

HEADER = b"CVIL" + ABI_VERSION.to_bytes(4, "little") + bytes([1, 2, 3]) + bytes(29)
IMAGE = HEADER + (4).to_bytes(8, "little") + bytes(16) + np.float32(2.5).tobytes()


def check_scale(model: rt.Model) -> None:
    assert model.run([np.array([1, 2], np.float32)])[0].tolist() == [2.5, 5.0]


@pytest.mark.parametrize("file", ["scale.o", "scale.so"])
def test_weights_beside_the_file(built: Path, tmp_path: Path, file: str) -> None:
    shutil.copy(built / file, tmp_path)
    with pytest.raises(rt.ArtefactError, match=r"scale\.weights' of 'scale' cannot be read"):
        rt.load(tmp_path / file)
    (tmp_path / "scale.weights").write_bytes(IMAGE)
    check_scale(rt.load(tmp_path / file))


def test_weights_from_anywhere(built: Path, tmp_path: Path) -> None:
    code = (built / "scale.o").read_bytes()
    path = tmp_path / "w"
    path.write_bytes(IMAGE)
    check_scale(rt.load_object(code, weights=path))
    check_scale(rt.load_object(code, weights=str(path)))
    check_scale(rt.load_object(code, weights=IMAGE))
    check_scale(rt.load_object(code, weights=np.frombuffer(IMAGE, np.uint8)))
    check_scale(rt.load_object(code, weights=lambda at, count: IMAGE[at : at + count]))


def test_weights_that_do_not_fit(built: Path) -> None:
    code = (built / "scale.o").read_bytes()
    with pytest.raises(rt.OptionError, match="'scale' needs its weights file"):
        rt.load_object(code)
    with pytest.raises(rt.ArtefactError, match="belongs to another build"):
        rt.load_object(code, weights=IMAGE.replace(b"\1\2\3", b"\1\2\4"))
    with pytest.raises(rt.ArtefactError, match="67 bytes, 68 expected"):
        rt.load_object(code, weights=IMAGE[:-1] + b"")
    with pytest.raises(ZeroDivisionError):
        rt.load_object(code, weights=lambda at, count: 1 // 0)
    with pytest.raises(rt.ArtefactError, match="reader of 'scale' failed"):
        rt.load_object(code, weights=lambda at, count: b"short")


def test_options(built: Path) -> None:
    path = built / "add.o"
    assert rt.load(path, variant="baseline").variant == "baseline"
    assert rt.load(path, threads=1).threads == 1
    assert rt.load(path, name="add").name == "add"
    with pytest.raises(rt.OptionError, match="no variant 'avx9'"):
        rt.load(path, variant="avx9")
    with pytest.raises(rt.TargetError, match="missing here: future"):
        rt.load(path, variant="future")
    with pytest.raises(rt.OptionError, match="threads"):
        rt.load(path, threads=0)
    with pytest.raises(rt.ArtefactError, match="no Cuvil model named sub_artefact"):
        rt.load(path, name="sub")


def test_renamed_library(built: Path, tmp_path: Path) -> None:
    shutil.copy(built / "add.so", tmp_path / "other-name.so.3")
    assert rt.load(tmp_path / "other-name.so.3").name == "add"


def test_other_files(built: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.so"
    with pytest.raises(rt.ArtefactError, match="No such file"):
        rt.load(bad)
    for content in (b"", b"hello", (built / "add.so").read_bytes()[:40]):
        bad.write_bytes(content)
        with pytest.raises(rt.ArtefactError, match=r"bad\.so: "):
            rt.load(bad)
    bad.write_bytes((built / "add.o").read_bytes()[:200])
    with pytest.raises(rt.ArtefactError, match="damaged ELF file"):
        rt.load(bad)


def run_python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_is_light() -> None:
    loaded = run_python("""
        import numpy, sys
        before = set(sys.modules)
        import cuvil_runtime
        print(*sorted(set(sys.modules) - before))
    """).split()
    heavy = {"asyncio", "importlib.metadata", "inspect", "ml_dtypes", "subprocess", "typing"}
    assert not heavy & set(loaded)


def test_fork_and_exit(built: Path) -> None:
    out = run_python(
        f"""
        import os, numpy as np, cuvil_runtime
        model = cuvil_runtime.load({str(built / "add.o")!r})
        x = np.ones((5000, 3), np.float32)
        model.run([x, x])
        child = os.fork()
        assert model.run([x, x])[0].sum() == 30000
        if not child:
            os._exit(0)
        print(os.waitpid(child, 0)[1], model.threads)
        """,
        CUVIL_NUM_THREADS="3",
    )
    assert out.split() == ["0", "3"]
