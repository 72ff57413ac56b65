"""pytest under Bazel: one target for one test file."""

load("@rules_python//python:defs.bzl", "py_test")

_MAIN = "//tools/bazel:pytest_main.py"

def pytest_test(name, srcs, size = "medium", args = [], data = [], deps = [], support = [], **kwargs):
    """Runs pytest on `srcs`.

    Args:
      name: of the target.
      srcs: the test files, in this package.
      size: of the test; medium is 5 minutes at most.
      args: more arguments for pytest.
      data: files that the tests read.
      deps: py_library targets; a test sees these and nothing else of the repository.
      support: Python files that are imported but hold no test (conftest.py, helpers).
      **kwargs: shard_count, tags, timeout, flaky and the like, for py_test.
    """
    py_test(
        name = name,
        size = size,
        srcs = [_MAIN] + srcs + support,
        args = ["-c", "pytest.ini"] + args + ["%s/%s" % (native.package_name(), src) for src in srcs],
        data = data + ["//:pytest.ini"],
        main = _MAIN,
        deps = deps,
        **kwargs
    )

def pytest_suite(srcs, deps = [], shards = {}, tags = [], outside = [], **kwargs):
    """One pytest_test for each file of `srcs`, named after it.

    A file named test_slow_*.py is tagged "slow": `make ci` runs it, `make test` does not.
    Only such a file may use torch and what else is not in the two lock files.

    Args:
      srcs: test files, usually a glob.
      deps: py_library targets for all of them.
      tags: for all of them.
      outside: files whose tests cannot run in a sandbox.
      shards: file -> number of processes that share its tests.
      **kwargs: for pytest_test.
    """
    for src in srcs:
        slow = src.split("/")[-1].startswith("test_slow_")
        site = "@cuvil_py//:site_all" if slow else "@cuvil_py//:site"
        pytest_test(
            name = src[:-len(".py")].replace("/", "_"),
            size = "large" if slow else "medium",
            srcs = [src],
            deps = deps + [site],
            shard_count = shards.get(src),
            tags = tags + (["slow"] if slow else []) + (["no-sandbox"] if src in outside else []),
            **kwargs
        )
