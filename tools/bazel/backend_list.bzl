"""Which backends there are, as a Bazel repository: `@cuvil_backends//:list.bzl` has BACKENDS.

A folder in backends/ with a pyproject.toml is one. `tools/bazelw` sets CUVIL_BACKENDS, so that a
running server notices a new one; a Bazel that is started otherwise looks when it starts.
"""

def _backend_list_impl(rctx):
    folders = rctx.path(Label("//:BUILD.bazel")).dirname.get_child("backends").readdir()
    names = [f.basename for f in folders if f.get_child("pyproject.toml").exists]
    rctx.file("BUILD.bazel", "")
    rctx.file("list.bzl", "BACKENDS = %s\n" % repr(sorted(names)))

backend_list = repository_rule(
    implementation = _backend_list_impl,
    configure = True,
    environ = ["CUVIL_BACKENDS"],
    local = True,
)
