"""The project's virtual environment as a Bazel repository.

`@cuvil_py//:toolchain` runs its interpreter, `:site` is what a target depends on to be run again
when an installed package changes, `:headers` are those of Python and pybind11.
"""

# Prints the include folder, pybind11's or an empty line, and "name==version ..." of what is
# installed. An editable install would let a test find sources outside its dependencies and pass
# from the cache after they broke, so it is refused.
_PROBE = """
import importlib.metadata, sys, sysconfig
folders = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
versions = []
for dist in importlib.metadata.distributions(path=folders):
    name = dist.metadata["Name"]
    if '"editable": true' in (dist.read_text("direct_url.json") or ""):
        sys.exit(f"{name} is an editable install: run pip uninstall {name}, then make setup")
    versions.append(f"{name}=={dist.version}")
try:
    import pybind11
    pybind = pybind11.get_include()
except ImportError:
    pybind = ""
print(sysconfig.get_path("include"))
print(pybind)
print(*sorted(set(versions)))
"""

_BUILD = """
load("@rules_cc//cc:defs.bzl", "cc_library")
load("@rules_python//python:defs.bzl", "py_library", "py_runtime", "py_runtime_pair")

package(default_visibility = ["//visibility:public"])

py_runtime(
    name = "runtime",
    interpreter_path = "{python}",
    python_version = "PY3",
    stub_shebang = "#!{python}",
)

py_runtime_pair(
    name = "runtimes",
    py3_runtime = ":runtime",
)

toolchain(
    name = "toolchain",
    toolchain = ":runtimes",
    toolchain_type = "@bazel_tools//tools/python:toolchain_type",
)

py_library(
    name = "site",
    data = ["site.txt"],
)

cc_library(
    name = "headers",
    hdrs = glob(["include/**"]),
    includes = ["include/python", "include/pybind11"],
)
"""

def _python_of(rctx):
    """CUVIL_PYTHON, or the interpreter of .venv at the root of the workspace."""
    if rctx.os.environ.get("CUVIL_PYTHON", ""):
        return rctx.os.environ["CUVIL_PYTHON"]
    root = rctx.path(Label("//:BUILD.bazel")).dirname
    return str(root.get_child(".venv").get_child("bin").get_child("python"))

def _python_env_impl(rctx):
    rctx.read(rctx.attr.lock)  # a changed lock file runs this again
    python = _python_of(rctx)
    out = rctx.execute([python, "-I", "-c", _PROBE])
    if out.return_code:
        fail("cannot use the Python '%s': %s\nRun `make setup`, or set CUVIL_PYTHON." % (python, out.stderr))
    include, pybind, versions = out.stdout.split("\n")[:3]
    rctx.symlink(include, "include/python")
    if pybind:
        rctx.symlink(pybind, "include/pybind11")
    rctx.file("site.txt", python + "\n" + versions.replace(" ", "\n") + "\n")
    rctx.file("BUILD.bazel", _BUILD.format(python = python))

python_env = repository_rule(
    implementation = _python_env_impl,
    attrs = {"lock": attr.label(allow_single_file = True)},
    configure = True,
    environ = ["CUVIL_PYTHON"],
    local = True,
)
