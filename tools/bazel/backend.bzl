"""The targets of a backend's package, the same for every cpu backend."""

load("@rules_python//python:defs.bzl", "py_library")
load("//tools/bazel:bitcode.bzl", "backend_bitcode")
load("//tools/bazel:py_dist.bzl", "py_dist")
load("//tools/bazel:pytest_test.bzl", "pytest_suite")
load("//tools/bazel:wheel.bzl", "wheel")

def cpu_backend(name, triples, bare_triples = []):
    """Declares the library `name` (cuvil_backend_*), its bitcode, dist-info, shims and wheel.

    Args:
      name: of the Python package, a folder beside the BUILD file; <name>/shim/*.c are its shims.
      triples: for which runtime and shims are compiled.
      bare_triples: without an operating system, and nothing to detect: the runtime alone.
    """
    sources = native.glob(
        [name + "/**"],
        allow_empty = True,
        exclude = [
            "**/*.pyc",
            "**/*.bc",
        ],
    )
    shims = native.glob([name + "/shim/*.c"])
    folder = name + "/data"
    bitcode = ["bitcode"]
    backend_bitcode(name = "bitcode", folder = folder, shims = shims, triples = triples)
    if bare_triples:
        bitcode.append("bare_bitcode")
        backend_bitcode(name = "bare_bitcode", folder = folder, triples = bare_triples)
    py_dist(name = "dist", dist = name)
    py_library(
        name = name,
        srcs = [file for file in sources if file.endswith(".py")],
        data = [file for file in sources if not file.endswith(".py")],
        imports = ["."],
        deps = [":" + each for each in bitcode] + [
            ":dist",
            "//core:cuvil",
        ],
    )
    native.filegroup(name = "shims", srcs = shims)
    native.filegroup(name = "sources", srcs = sources + ["pyproject.toml"])
    wheel(
        name = "wheel",
        srcs = [":%s_files" % each for each in bitcode] + [
            ":sources",
            "//:LICENSE",
        ],
        tags = ["manual"],
    )

def backend_tests(backend, data = [], deps = []):
    """A target for each test_*.py below the BUILD file, with what lies beside it.

    Args:
      backend: the label of the library under test.
      data, deps: more that the tests need.
    """
    pytest_suite(
        srcs = native.glob(
            ["**/test_*.py"],
            allow_empty = True,
        ),
        data = native.glob(
            ["**"],
            allow_empty = True,
            exclude = [
                "**/*.py",
                "**/*.pyc",
                "BUILD.bazel",
            ],
        ) + ["//runtime_c:headers"] + data,
        support = native.glob(
            ["**/*.py"],
            allow_empty = True,
            exclude = ["**/test_*.py"],
        ),
        deps = [backend] + deps,
    )
