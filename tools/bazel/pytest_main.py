"""The main program of every pytest target: pytest with Bazel's shards, filter and result file."""

import faulthandler
import os
import signal
import sys

# Python puts this file's real folder, which is outside the sandbox, on the path.
_HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:] = [path for path in sys.path if path != _HERE]

import pytest  # noqa: E402


class Shard:
    """Keeps every n-th test: the shard that Bazel asks this process to run."""

    def __init__(self) -> None:
        self.total = int(os.environ.get("TEST_TOTAL_SHARDS", "1"))
        self.index = int(os.environ.get("TEST_SHARD_INDEX", "0"))
        self.collected = 0
        if status_file := os.environ.get("TEST_SHARD_STATUS_FILE"):
            with open(status_file, "w", encoding="utf-8"):
                pass  # its existence says that the runner knows about shards

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Drops the tests of the other shards."""
        self.collected = len(items)
        others = [test for n, test in enumerate(items) if n % self.total != self.index]
        config.hook.pytest_deselected(items=others)
        items[:] = items[self.index :: self.total]


def arguments() -> list[str]:
    """pytest's arguments: Bazel's environment turned into options, then the target's own."""
    env = os.environ
    args = ["-p", "no:cacheprovider", "-ra", f"--rootdir={os.getcwd()}"]
    if "XML_OUTPUT_FILE" in env:
        args.append(f"--junitxml={env['XML_OUTPUT_FILE']}")
    if "TEST_TMPDIR" in env:
        args.append(f"--basetemp={env['TEST_TMPDIR']}/pytest")
    if "TESTBRIDGE_TEST_ONLY" in env:
        args += ["-k", env["TESTBRIDGE_TEST_ONLY"]]
    return args + sys.argv[1:]


def main() -> int:
    """Runs pytest; the exit status is its own, but an empty shard of a non-empty file passes."""
    # A timeout then shows where every thread stood.
    faulthandler.register(signal.SIGTERM, file=os.dup(2), chain=True)
    if "TEST_TMPDIR" in os.environ:
        os.environ.setdefault("HOME", os.environ["TEST_TMPDIR"])
    shard = Shard()
    status = pytest.main(arguments(), plugins=[shard])
    if status == pytest.ExitCode.NO_TESTS_COLLECTED and shard.collected > 0:
        return 0
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
