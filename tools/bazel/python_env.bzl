"""The project's virtual environment as a Bazel repository.

`@cuvil_py//:toolchain` runs its interpreter, `:headers` are those of Python and pybind11. A target
that depends on `:site` runs again when a package of the lock files changes its version;
`:site_all` stands for every installed package, for the tests that use torch and other peers.
"""

# Arguments: the lock files. Prints the include folder, pybind11's or an empty line, then
# "name==version ..." of the locked packages and of all. An editable install would let a test find
# sources outside its dependencies and pass from the cache after they broke, so it is refused.
_PROBE = """
import importlib.metadata, pathlib, re, sys, sysconfig

def normal(name):
    return re.sub("[-_.]+", "-", name).lower()

locked = set()
for lock in sys.argv[1:]:
    locked |= {normal(n) for n in re.findall("(?m)^([^#=]+)==", pathlib.Path(lock).read_text())}
versions = {}
folders = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
for dist in importlib.metadata.distributions(path=folders):
    name = normal(dist.metadata["Name"])
    if '"editable": true' in (dist.read_text("direct_url.json") or ""):
        sys.exit(f"{name} is an editable install: run pip uninstall {name}, then make setup")
    versions[name] = f"{name}=={dist.version}"
try:
    import pybind11
    pybind = pybind11.get_include()
except ImportError:
    pybind = ""
print(sysconfig.get_path("include"))
print(pybind)
print(*sorted(version for name, version in versions.items() if name in locked))
print(*sorted(versions.values()))
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

py_library(
    name = "site_all",
    data = ["site_all.txt"],
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
    locks = [str(rctx.path(lock)) for lock in rctx.attr.locks]
    for lock in rctx.attr.locks:
        rctx.read(lock)  # a changed lock file runs this again
    python = _python_of(rctx)
    out = rctx.execute([python, "-I", "-c", _PROBE] + locks)
    if out.return_code:
        fail("cannot use the Python '%s': %s\nRun `make setup`, or set CUVIL_PYTHON." % (python, out.stderr))
    include, pybind, locked, installed = out.stdout.split("\n")[:4]
    rctx.symlink(include, "include/python")
    if pybind:
        rctx.symlink(pybind, "include/pybind11")
    for name, versions in [("site.txt", locked), ("site_all.txt", installed)]:
        rctx.file(name, "\n".join([python] + versions.split(" ")) + "\n")
    rctx.file("BUILD.bazel", _BUILD.format(python = python))

python_env = repository_rule(
    implementation = _python_env_impl,
    attrs = {"locks": attr.label_list(allow_files = True)},
    configure = True,
    environ = ["CUVIL_PYTHON"],
    local = True,
)
