"""A distribution's metadata without installing it: entry points work from Bazel's runfiles."""

load("@rules_python//python:defs.bzl", "py_library")

def py_dist(name, dist, pyproject = "pyproject.toml", **kwargs):
    """A py_library that holds `<dist>.dist-info`, made from [project] of a pyproject.toml.

    Args:
      name: of the py_library.
      dist: the distribution's name with underscores; the folder's name has no version, which
        importlib.metadata accepts, since METADATA holds it.
      pyproject: the file.
      **kwargs: for the py_library.
    """
    outs = ["%s.dist-info/%s" % (dist, file) for file in ["METADATA", "entry_points.txt"]]
    native.genrule(
        name = name + "_files",
        srcs = [pyproject],
        outs = outs,
        cmd = "$(execpath //tools/bazel:dist_info) $(SRCS) $(OUTS)",
        tools = ["//tools/bazel:dist_info"],
    )
    py_library(
        name = name,
        data = outs,
        imports = ["."],
        **kwargs
    )
