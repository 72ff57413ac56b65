"""Every row of the list of known faults has tests, and every test that is named is there."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FAULTS = ROOT / "tests" / "faults"
# The list's ids are not consecutive: rows were dropped before it was published.
IDS = """
    B01 B02 B04 B06 B07 B08 B09 B11 B12 B13 B14 B17 B18 B21 B22 B23 B24 B26 B27 B29 B30 B32 B34 B36
    B37 B39 B40 B41 B43 B44 B45 B47 B48 B49 B50 B51 B52 B54 B55 B56 B59 B61
"""


@cache
def functions_of(path: Path) -> frozenset[str]:
    """The names of the test functions of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))
    return frozenset(f.name for f in functions if f.name.startswith("test_"))


def rows() -> dict[str, dict[str, object]]:
    return tomllib.loads((FAULTS / "rows.toml").read_text(encoding="utf-8"))


def here() -> set[str]:
    return {name for path in FAULTS.glob("test_*.py") for name in functions_of(path)}


def test_every_row_is_tested_or_says_why_not() -> None:
    assert list(rows()) == IDS.split()
    for name, row in rows().items():
        assert row.get("tests") or row.get("later"), name
        assert set(row) <= {"what", "tests", "later"} and row["what"], name


def test_every_named_test_is_there() -> None:
    known = here()
    for name, row in rows().items():
        for test in row.get("tests", ()):  # type: ignore[attr-defined]
            file, _, function = test.rpartition("::")
            found = functions_of(ROOT / file) if file else known
            assert function in found, f"{name}: {test}"


def test_a_test_named_after_a_row_is_listed_there() -> None:
    listed = {name: row.get("tests", ()) for name, row in rows().items()}
    for test in here():
        for word in re.findall(r"(?<=_)b\d\d(?=_)", test):
            assert test in listed[word.upper()], test  # type: ignore[operator]
