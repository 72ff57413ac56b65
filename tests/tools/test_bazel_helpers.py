"""The helpers of the build: what they write about distributions and how they count tests."""

from __future__ import annotations

import json
from collections import Counter
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from tools.bazel import count_tests, dist_info

PROJECT = {
    "name": "some-dist",
    "version": "1.2",
    "dependencies": ["numpy>=1"],
    "optional-dependencies": {"link": ["ziglang"]},
    "scripts": {"tool": "some.cli:main"},
    "entry-points": {"some.plugins": {"a": "some.a:A"}},
}


def test_importlib_reads_the_metadata(tmp_path: Path) -> None:
    (tmp_path / "METADATA").write_text(dist_info.metadata(PROJECT))
    (tmp_path / "entry_points.txt").write_text(dist_info.entry_points(PROJECT))
    dist = PathDistribution(tmp_path)
    assert (dist.metadata["Name"], dist.version) == ("some-dist", "1.2")
    assert dist.requires == ["numpy>=1", 'ziglang; extra == "link"']
    assert [(e.group, e.name, e.value) for e in dist.entry_points] == [
        ("console_scripts", "tool", "some.cli:main"),
        ("some.plugins", "a", "some.a:A"),
    ]


def result(label: str, status: str, xml: Path | None = None) -> dict[str, object]:
    outputs = [{"name": "test.xml", "uri": f"file://{xml}"}] if xml else []
    payload = {"status": status, "testActionOutput": outputs}
    return {"id": {"testResult": {"label": label}}, "testResult": payload}


def test_pytest_counts_by_test_and_c_by_program(tmp_path: Path) -> None:
    xml = tmp_path / "test.xml"
    suite = '<testsuite tests="5" failures="1" errors="1" skipped="1"/>'
    xml.write_text(f"<testsuites>{suite}</testsuites>")
    events = [result("//a:py", "FAILED", xml), result("//a:c", "PASSED")]
    counts, failed = count_tests.count_run(events)
    assert counts == Counter(passed=3, failed=2, skipped=1)
    assert failed == ["//a:py"]


@pytest.mark.parametrize("status", ["TIMEOUT", "FAILED"])
def test_no_result_file_is_one_failure(status: str) -> None:
    assert count_tests.count_run([result("//a:t", status)]) == (Counter(failed=1), ["//a:t"])


def test_a_target_that_does_not_build_is_one_failure() -> None:
    events = [
        {"id": {"targetCompleted": {"label": "//a:bad"}}, "completed": {}},
        {"id": {"targetCompleted": {"label": "//a:good"}}, "completed": {"success": True}},
        {"id": {"targetConfigured": {"label": "//a:worse"}}, "aborted": {"reason": "ANALYSIS"}},
        {"id": {"targetConfigured": {"label": "//a:good"}}, "configured": {}},
    ]
    assert count_tests.count_run(events) == (Counter(failed=2), ["//a:bad", "//a:worse"])


def test_the_last_line_sums_all_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    count_tests.keep(tmp_path, "tests", Counter(passed=9), [])
    count_tests.keep(tmp_path, "tests", Counter(passed=10, skipped=2), [])
    count_tests.keep(tmp_path, "asan", Counter(passed=1, failed=1), ["//a:c"])
    assert json.loads((tmp_path / "asan.json").read_text())["counts"]["failed"] == 1
    assert count_tests.total(tmp_path) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "11 passed, 1 failed, 2 skipped"


def test_a_target_that_fails_in_one_of_two_runs_has_failed(tmp_path: Path) -> None:
    count_tests.keep(tmp_path, "tests", Counter(passed=8, failed=1), ["//a:unsteady"])
    count_tests.keep(tmp_path, "tests", Counter(passed=12), [])
    count_tests.keep(tmp_path, "asan", Counter(passed=1), [])
    assert count_tests.total(tmp_path) == 1
    kept = json.loads((tmp_path / "tests.json").read_text())
    assert kept == {"counts": {"passed": 12, "failed": 1}, "failed": ["//a:unsteady"]}
