"""What a backend links into every artefact, as LLVM bitcode."""

load("@rules_python//python:defs.bzl", "py_library")

_COMPILER = "//tools:build_bitcode"

def backend_bitcode(name, folder, triples, shims = [], **kwargs):
    """The C runtime and a backend's own C files, compiled for each triple.

    Args:
      name: of a py_library that carries the files; <name>_files is a filegroup of them.
      folder: where they go, under this package: <folder>/<file>.<triple>.bc.
      triples: LLVM triples without a vendor.
      shims: the backend's C files; each imports nothing.
      **kwargs: for the py_library.
    """
    outs = []
    for triple in triples:
        for source in [None] + shims:
            stem = source.split("/")[-1][:-len(".c")] if source else "cuvil_runtime"
            out = "%s/%s.%s.bc" % (folder, stem, triple)
            option = "--source $(execpath %s)" % source if source else ""
            native.genrule(
                name = "%s_%s_%s" % (name, stem, triple),
                srcs = ["//runtime_c:sources"] + ([source] if source else []),
                outs = [out],
                cmd = "$(execpath %s) %s %s $$(dirname $@) >/dev/null" % (_COMPILER, option, triple),
                tools = [_COMPILER],
            )
            outs.append(out)
    native.filegroup(
        name = name + "_files",
        srcs = outs,
    )
    py_library(
        name = name,
        data = outs,
        **kwargs
    )
