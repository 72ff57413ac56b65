"""The rules of the house. Each check takes the root of a tree and names the offenders."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from architecture.source import File, Import, code, files

CORE = "core/cuvil"
EXEMPT_FROM_NAMES = f"{CORE}/data/backends.json"
PACKAGES = ("core/cuvil", "backends", "runtime_c/python/cuvil_runtime")

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60
P90_FUNCTION_LINES = 25

# Imports go from a later row to the same or an earlier one.
LAYERS = (
    ("errors", "data", "extents", "options", "version"),
    ("ir",),
    ("ops",),
    ("rewrite", "rules"),
    ("plan",),
    ("codegen",),
    ("targets",),
    ("fusions", "pipeline"),
    ("frontends", "engine", "cli"),
)
RANKS = {name: rank for rank, names in enumerate(LAYERS) for name in names}
TOP = len(LAYERS) - 1

# Folders that may import a library; where a library has no row, everybody may.
LIBRARY_USERS = {
    "xdsl": (f"{CORE}/ir/", f"{CORE}/rewrite/"),
    "llvmlite": (f"{CORE}/codegen/", "backends/"),
    "torch": (f"{CORE}/frontends/torch/", f"{CORE}/integrations/"),
}

_BACKEND_WORDS = (
    r"cuvil_backend_\w+|x86(?:_64)?|x64|amd64|i[36]86|avx\w*|sse\d?|vnni|amx|znver\d?|intel"
    r"|aarch64|arm64|armv\d\w*|cortex\w*|neon|sve\d?|riscv\d*|rvv|nvptx\d*|cuda|rocm|amdgpu|gfx\d+"
)
BACKEND_NAME = re.compile(rf"(?<![A-Za-z])(?:{_BACKEND_WORDS})(?![A-Za-z])", re.IGNORECASE)


MAY_USE_A_BACKEND = ("docs/", "examples/", "tests/", "core/tests/", "runtime_c/tests/")
SUFFIXES_OF_SOURCES = {"", ".bazel", ".bzl", ".c", ".h", ".ini", ".json", ".py", ".sh", ".toml"}


def layer_of(module: str) -> str | None:
    """The second part of a module of core: "cuvil.ir.dims" -> "ir". None for another package."""
    parts = module.split(".")
    if parts[0] != "cuvil":
        return None
    return parts[1] if len(parts) > 1 else ""


def module_of(path: str) -> str:
    """The module name of a file in core."""
    return path.removeprefix("core/").removesuffix(".py").replace("/", ".")


def wrong_imports(root: Path) -> list[str]:
    """Imports in core that go to a later layer."""
    found = []
    for file in code(root, CORE, {".py"}):
        mine = RANKS.get(layer_of(module_of(file.path)) or "", TOP)
        for item in file.imports:
            theirs = layer_of(item.module)
            if theirs is not None and RANKS.get(theirs, TOP) > mine:
                found.append(f"{file.path}:{item.line} imports {item.module}")
    return found


def named_backends(root: Path) -> list[str]:
    """Names of backends, architectures and their extensions in core, comments included."""
    found = []
    for file in files(root, CORE):
        if file.path == EXEMPT_FROM_NAMES or file.path.endswith((".so", ".pyc")):
            continue
        for number, line in enumerate(file.lines, 1):
            found += [f"{file.path}:{number} says {word}" for word in BACKEND_NAME.findall(line)]
    return found


def long_files(root: Path) -> list[str]:
    """Code files over the limit, tests included."""
    sizes = [(file.path, len(file.lines)) for file in code(root)]
    return [f"{path} has {size} lines" for path, size in sizes if size > MAX_FILE_LINES]


def long_functions(root: Path) -> list[str]:
    """Functions over the limit, tests included."""
    return [
        f"{file.path}:{item.line} {item.name} has {item.lines} lines"
        for file in code(root)
        for item in file.functions
        if item.lines > MAX_FUNCTION_LINES
    ]


def wide_functions(root: Path) -> list[str]:
    """The longest tenth of the packages' functions, if its shortest is over the limit."""
    functions = [
        (item.lines, f"{file.path}:{item.line} {item.name} has {item.lines} lines")
        for package in PACKAGES
        for file in code(root, package, {".py"})
        if "/tests/" not in file.path
        for item in file.functions
    ]
    functions.sort(reverse=True)
    longest = functions[: len(functions) // 10 + 1]
    too_wide = bool(longest) and longest[-1][0] > P90_FUNCTION_LINES
    return [report for _, report in longest] if too_wide else []


def local_imports(root: Path) -> list[str]:
    """Imports inside functions of core, but for `__getattr__` and the commands in cli/."""

    def allowed(file: File, item: Import) -> bool:
        return item.function in (None, "__getattr__") or file.path.startswith(f"{CORE}/cli/")

    return [
        f"{file.path}:{item.line} imports {item.module} in {item.function}"
        for file in code(root, CORE, {".py"})
        for item in file.imports
        if not allowed(file, item)
    ]


def foreign_libraries(root: Path) -> list[str]:
    """Imports of a library outside the folders that may know it."""
    return [
        f"{file.path}:{item.line} imports {item.module}"
        for package in PACKAGES
        for file in code(root, package, {".py"})
        if "/tests/" not in file.path
        for item in file.imports
        for library, users in LIBRARY_USERS.items()
        if item.module.split(".")[0] == library and not file.path.startswith(users)
    ]


def hand_registered(root: Path) -> list[str]:
    """Imports of one rule or record by name: the package walk finds them, nothing else may.

    Neighbours may share: the check is about imports from outside their folder. Modules of rules/
    whose names start with an underscore, and those of ops/onnx/ and ops/aten/ that register
    nothing, are helpers.
    """
    rules = [
        module_of(file.path)
        for file in code(root, f"{CORE}/rules", {".py"})
        if not Path(file.path).name.startswith("_")
    ]
    operators = [
        module_of(file.path)
        for file in code(root, f"{CORE}/ops/onnx", {".py"})
        if re.search(r"^(@onnx_op|onnx_rows)\(", file.text, re.MULTILINE)
    ]
    overloads = [
        module_of(file.path)
        for file in code(root, f"{CORE}/ops/aten", {".py"})
        if re.search(r"^(@aten|aten_rows)\(", file.text, re.MULTILINE)
    ]
    modules = {*rules, *operators, *overloads}
    found = []
    for file in code(root, CORE, {".py"}):
        folder = module_of(file.path).rpartition(".")[0]
        for item in file.imports:
            named = {item.module, item.module.rpartition(".")[0]} & modules
            if any(module.rpartition(".")[0] != folder for module in named):
                found.append(f"{file.path}:{item.line} imports {item.module}")
    return found


def repeated_names(root: Path) -> list[str]:
    """Test files that share a name: a report that says `test_x.py` must mean one file."""
    tests = [file.path for file in code(root, suffixes={".py"}) if "/test_" in file.path]
    counts = Counter(path.split("/")[-1] for path in tests)
    return [path for path in tests if counts[path.split("/")[-1]] > 1]


def listed_backends(root: Path) -> list[str]:
    """Backends that a file outside `backends/<name>` names: a new one would have to be added there.

    Tests and examples may use one; texts for people may tell of it.
    """
    names = sorted(path.parent.name for path in root.glob("backends/*/pyproject.toml"))
    if not names:
        return []
    named = re.compile(rf"(?:backends/|cuvil[_-]backend[_-])(?:{'|'.join(names)})\b")
    return [
        f"{file.path}:{number} says {word}"
        for file in files(root)
        if file.path != EXEMPT_FROM_NAMES
        and not file.path.startswith((*(f"backends/{n}/" for n in names), *MAY_USE_A_BACKEND))
        and Path(file.path).suffix in SUFFIXES_OF_SOURCES
        for number, line in enumerate(file.lines, 1)
        for word in named.findall(line)
    ]
