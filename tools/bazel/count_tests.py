"""Counts the tests of Bazel runs, for one line at the end of CI.

    count_tests.py bazel FOLDER NAME EVENTS   EVENTS: the run's --build_event_json_file
    count_tests.py xml FOLDER NAME XML        XML: pytest's --junitxml
    count_tests.py sum FOLDER                 prints "N passed, N failed"; fails if any failed

A pytest test counts by itself, a C test is one. A target without a result (it did not build, timed
out or crashed) is one failure. A second run under the same NAME replaces the first, but a target
that failed in the first and passed in the second remains one failure.
"""

import json
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from typing import Any


def count_xml(text: str) -> Counter[str]:
    """Tests of one result file in JUnit's format by outcome: passed, failed, skipped."""
    counts: Counter[str] = Counter()
    for suite in ElementTree.fromstring(text).iter("testsuite"):
        value = {key: int(suite.get(key, "0")) for key in ("tests", "failures", "errors")}
        skipped = int(suite.get("skipped", "0"))
        failed = min(value["failures"] + value["errors"], value["tests"])
        counts.update(failed=failed, skipped=skipped)
        counts["passed"] += value["tests"] - failed - skipped
    return counts


def count_result(result: dict[str, Any]) -> Counter[str]:
    """Tests of one shard of a target: a `testResult` event's payload."""
    passed = result["status"] in ("PASSED", "FLAKY")
    counts: Counter[str] = Counter()
    for output in result.get("testActionOutput", []):
        path = Path(urllib.parse.unquote(output["uri"].removeprefix("file://")))
        if output["name"] == "test.xml" and path.exists() and result["status"] != "TIMEOUT":
            counts += count_xml(path.read_text(encoding="utf-8", errors="replace"))
    if not passed and not counts["failed"]:
        counts["failed"] = 1
    if passed and not counts:
        counts["passed"] = 1
    return counts


def is_broken(event: dict[str, Any]) -> bool:
    """Whether an event says that a target could not be analysed or built."""
    if "aborted" in event:
        return event["aborted"].get("reason") != "SKIPPED"
    return not event.get("completed", {}).get("success", "completed" not in event)


def count_run(events: list[dict[str, Any]]) -> tuple[Counter[str], list[str]]:
    """Tests of a run by outcome, and the labels of the targets that failed."""
    broken: set[str] = set()
    results: dict[tuple[str, int, int], Counter[str]] = {}
    for event in events:
        ident = event["id"]
        if "testResult" in ident and "testResult" in event:
            key = ident["testResult"]
            slot = (key["label"], key.get("run", 1), key.get("shard", 1))
            results[slot] = count_result(event["testResult"])  # the last attempt wins
        for kind in ("targetConfigured", "targetCompleted"):
            if kind in ident and is_broken(event):
                broken.add(ident[kind]["label"])
    failed = {label for (label, _, _), counts in results.items() if counts["failed"]}
    broken -= {label for label, _, _ in results}
    total = sum(results.values(), Counter({"failed": len(broken)}))
    return total, sorted(broken | failed)


def keep(folder: Path, name: str, counts: Counter[str], failed: list[str]) -> None:
    """Keeps the counts of one run in `folder`, in place of an earlier one of that name; what
    failed only in that one is kept as failed."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    earlier = json.loads(path.read_text(encoding="utf-8"))["failed"] if path.exists() else []
    unsteady = [label for label in earlier if label not in failed]
    totals = counts + Counter(failed=len(unsteady))
    record = {"counts": dict(totals), "failed": [*failed, *unsteady]}
    path.write_text(json.dumps(record, indent=1), encoding="utf-8")


def total(folder: Path) -> int:
    """Prints the failed targets and the sum of all runs; 1 if a test failed or none ran."""
    counts: Counter[str] = Counter()
    for path in sorted(folder.glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        counts.update(record["counts"])
        for label in record["failed"]:
            print(f"FAILED in {path.stem}: {label}")
    line = f"{counts['passed']} passed, {counts['failed']} failed"
    print(f"{line}, {counts['skipped']} skipped" if counts["skipped"] else line)
    return int(counts["failed"] > 0 or counts["passed"] == 0)


def main() -> int:
    """Runs the command of the command line."""
    match sys.argv[1:]:
        case ["bazel", folder, name, path]:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
            keep(Path(folder), name, *count_run([json.loads(line) for line in lines]))
            return 0
        case ["xml", folder, name, path]:
            counts = count_xml(Path(path).read_text(encoding="utf-8"))
            keep(Path(folder), name, counts, [path] if counts["failed"] else [])
            return 0
        case ["sum", folder]:
            return total(Path(folder))
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main())
