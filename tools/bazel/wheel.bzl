"""Wheels, built from a copy of exactly the declared files."""

def _wheel_impl(ctx):
    out = ctx.actions.declare_directory(ctx.label.name)
    args = ctx.actions.args()
    args.add(ctx.label.package)
    args.add_all([out], expand_directories = False)
    args.use_param_file("@%s", use_always = True)
    args.set_param_file_format("multiline")
    args.add_all(ctx.files.srcs, map_each = _pair)
    ctx.actions.run(
        outputs = [out],
        inputs = ctx.files.srcs,
        executable = ctx.executable._build,
        arguments = [args],
        mnemonic = "Wheel",
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([out]))]

def _pair(file):
    return "%s=%s" % (file.path, file.short_path)

wheel = rule(
    doc = "A folder with the wheel of the package's pyproject.toml, which must be in `srcs`.",
    implementation = _wheel_impl,
    attrs = {
        "srcs": attr.label_list(
            doc = "All files of the distribution; generated ones land at the place they would " +
                  "have in the source tree.",
            allow_files = True,
        ),
        "_build": attr.label(
            default = "//tools/bazel:build_wheel",
            cfg = "exec",
            executable = True,
        ),
    },
)
