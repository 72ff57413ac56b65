"""The house keeps its rules, and each rule can fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from architecture import checks

ROOT = Path(__file__).resolve().parents[2]

Check = Callable[[Path], list[str]]

CHECKS: dict[str, Check] = {
    "imports go to earlier layers only": checks.wrong_imports,
    "core names no backend": checks.named_backends,
    "files are short": checks.long_files,
    "functions are short": checks.long_functions,
    "most functions are very short": checks.wide_functions,
    "imports stand at the top of core's files": checks.local_imports,
    "a library is known to its own layer only": checks.foreign_libraries,
    "rules and records are found by the package walk": checks.hand_registered,
    "test files have different names": checks.repeated_names,
    "no list of backends is kept by hand": checks.listed_backends,
}


def long_function(name: str, lines: int) -> str:
    return f"def {name}():\n" + "    pass\n" * (lines - 1)


# check -> files to plant, and what must stand in the report
PLANTED: list[tuple[Check, dict[str, str], list[str]]] = [
    (
        checks.wrong_imports,
        {
            "core/cuvil/ir/bad.py": "from cuvil.plan import arena\n",
            "core/cuvil/rules/fuse/bad.py": "from ...codegen import llvm\n",
            "core/cuvil/plan/bad.py": "import cuvil\n",
            "core/cuvil/cli/good.py": "from cuvil.ir import dims\nfrom cuvil import engine\n",
        },
        [
            "core/cuvil/ir/bad.py:1 imports cuvil.plan.arena",
            "core/cuvil/plan/bad.py:1 imports cuvil",
            "core/cuvil/rules/fuse/bad.py:1 imports cuvil.codegen.llvm",
        ],
    ),
    (
        checks.named_backends,
        {
            "core/cuvil/plan/bad.py": "# wide on AVX512\nname = 'x86_64'\n",
            "core/cuvil/data/backends.json": '{"x86_64": "cuvil-backend-x86"}\n',
            "core/cuvil/plan/good.py": "neonate = posse = 'armed'\n",
        },
        ["core/cuvil/plan/bad.py:1 says AVX512", "core/cuvil/plan/bad.py:2 says x86_64"],
    ),
    (
        checks.long_files,
        {"runtime_c/src/bad.c": "\n" * 501, "tools/good.py": "\n" * 500},
        ["runtime_c/src/bad.c has 501 lines"],
    ),
    (
        checks.long_functions,
        {
            "tests/bad.py": long_function("f", 61),
            "tests/good.py": long_function("f", 60),
            "runtime_c/src/bad.c": "int g(int a,\n      int b) {\n" + "  a++;\n" * 60 + "}\n",
            "runtime_c/src/good.c": "int t[] = {\n" + "    1,\n" * 60 + "};\n",
        },
        ["runtime_c/src/bad.c:1 g has 63 lines", "tests/bad.py:1 f has 61 lines"],
    ),
    (
        checks.wide_functions,
        {
            "core/cuvil/ir/bad.py": long_function("f", 27) + long_function("g", 26),
            "backends/b/good.py": "def f(): ...\n" * 9,
        },
        [
            "core/cuvil/ir/bad.py:1 f has 27 lines",
            "core/cuvil/ir/bad.py:28 g has 26 lines",
        ],
    ),
    (
        checks.local_imports,
        {
            "core/cuvil/plan/bad.py": "def f():\n    import json\n",
            "core/cuvil/__init__.py": "def __getattr__(name):\n    import json\n",
            "core/cuvil/cli/good.py": "def command():\n    import json\n",
        },
        ["core/cuvil/plan/bad.py:2 imports json in f"],
    ),
    (
        checks.foreign_libraries,
        {
            "core/cuvil/plan/bad.py": "import llvmlite.binding\nfrom xdsl import ir\n",
            "backends/b/pkg/bad.py": "import xdsl\nimport llvmlite\n",
            "core/cuvil/ir/good.py": "import xdsl.ir\n",
        },
        [
            "backends/b/pkg/bad.py:1 imports xdsl",
            "core/cuvil/plan/bad.py:1 imports llvmlite.binding",
            "core/cuvil/plan/bad.py:2 imports xdsl.ir",
        ],
    ),
    (
        checks.hand_registered,
        {
            "core/cuvil/rules/fuse/gelu.py": "",
            "core/cuvil/rules/fuse/good.py": "from cuvil.rules.fuse import gelu\n",
            "core/cuvil/ops/onnx/math.py": "@onnx_op('Add')\ndef add(): ...\n",
            "core/cuvil/ops/onnx/registry.py": "def onnx_op(): ...\n",
            "core/cuvil/pipeline.py": "from cuvil.rules.fuse import gelu\n"
            "from cuvil.ops.onnx.math import add\nfrom cuvil.ops.onnx.registry import onnx_op\n",
        },
        [
            "core/cuvil/pipeline.py:1 imports cuvil.rules.fuse.gelu",
            "core/cuvil/pipeline.py:2 imports cuvil.ops.onnx.math.add",
        ],
    ),
    (
        checks.repeated_names,
        {"core/tests/test_a.py": "", "tests/x/test_a.py": "", "tests/x/test_b.py": ""},
        ["core/tests/test_a.py", "tests/x/test_a.py"],
    ),
    (
        checks.listed_backends,
        {
            "backends/b/pyproject.toml": 'name = "cuvil-backend-b"\n',
            "backends/b/BUILD.bazel": 'name = "cuvil_backend_b"\n',
            "tests/x/test_good.py": "import cuvil_backend_b\n",
            "tools/good.py": "text = 'backends/bad and cuvil_backend_c'\n",
            "tools/BUILD.bazel": 'deps = ["//backends/b:all"]\n',
            "Makefile": "build:\n\tmake cuvil-backend-b\n",
        },
        ["Makefile:2 says cuvil-backend-b", "tools/BUILD.bazel:1 says backends/b"],
    ),
]


@pytest.mark.parametrize("rule", CHECKS)
def test_the_tree_keeps(rule: str) -> None:
    offenders = CHECKS[rule](ROOT)
    assert not offenders, "\n".join([f"{rule}, but:", *offenders])


@pytest.mark.parametrize(
    ("check", "planted", "report"), PLANTED, ids=[check.__name__ for check, _, _ in PLANTED]
)
def test_a_planted_offence_is_reported_by_name(
    check: Check, planted: dict[str, str], report: list[str], tmp_path: Path
) -> None:
    for path, text in planted.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert sorted(check(tmp_path)) == sorted(report)


def test_every_check_has_a_planted_offence() -> None:
    assert {check for check, _, _ in PLANTED} == set(CHECKS.values())


def test_the_tree_is_the_repository() -> None:
    assert (ROOT / "core/cuvil/ir").is_dir()
