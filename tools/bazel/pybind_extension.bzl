"""A pybind11 module and the py_library that carries it."""

load("@rules_cc//cc:defs.bzl", "cc_binary")
load("@rules_python//python:defs.bzl", "py_library")

# NDEBUG: the macros of Python's headers test the types of what they are given without it.
_COPTS = ["-O2", "-DNDEBUG", "-fomit-frame-pointer", "-fvisibility=hidden", "-fexceptions"]

def pybind_extension(name, module, srcs, copts = [], deps = [], **kwargs):
    """Builds `module`.so, a name without an ABI tag, which Python imports all the same.

    Args:
      name: of the py_library.
      module: path of the module under this package, without an ending.
      srcs: C++ sources.
      copts: more compiler options.
      deps: cc_library targets, linked in statically.
      **kwargs: for the py_library.
    """
    cc_binary(
        name = module + ".so",
        srcs = srcs,
        copts = _COPTS + copts,
        linkshared = True,
        linkstatic = True,
        deps = deps + ["@cuvil_py//:headers"],
    )
    py_library(
        name = name,
        data = [module + ".so"],
        **kwargs
    )
