"""examples/c for another kind of machine, and by Bazel for both; programs run under qemu there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from c_consumers.digits_example import FOREIGN, Consumer, consumer, needs

# Debian's Bazel 4 would fetch these rules from the network, though they are built in.
_BUILT_IN = {
    "cc": ("binary", "import", "library", "test", "toolchain", "toolchain_suite"),
    "java": ("binary", "import", "library", "runtime", "toolchain"),
    "py": ("binary", "library", "runtime", "test"),
}
_REPOSITORIES = ("rules_cc", "rules_java", "rules_python", "remote_coverage_tools")


@pytest.fixture
def there(tmp_path: Path) -> Consumer:
    return consumer(tmp_path, FOREIGN)


def test_cmake_cross_compiles_the_example(there: Consumer) -> None:
    needs("cmake")
    defines = {
        "CMAKE_PREFIX_PATH": there.folder / "build",
        "CMAKE_SYSTEM_NAME": "Linux",
        "CMAKE_SYSTEM_PROCESSOR": FOREIGN.arch,
        "CMAKE_C_COMPILER": there.compiler("c"),
        "CMAKE_CXX_COMPILER": there.compiler("c++"),
    }
    options = [f"-D{name}={value}" for name, value in defines.items()]
    there.call("cmake", "-S", ".", "-B", "made", *options)
    there.call("cmake", "--build", "made")
    there.check(there.folder / "made")


def test_make_cross_compiles_the_example(there: Consumer) -> None:
    needs("make", "pkg-config")
    there.call("make", f"CC={there.compiler('c')}", f"CXX={there.compiler('c++')}")
    there.check(there.folder)


@pytest.mark.parametrize("foreign", [False, True], ids=["here", "foreign"])
def test_bazel_builds_the_example(foreign: bool, tmp_path: Path) -> None:
    """By its own detection of a compiler, which takes CC: of zig, the C programs."""
    needs("bazel")
    example = consumer(tmp_path / "example", FOREIGN if foreign else None)
    (example.folder / "digits.bazel").rename(example.folder / "BUILD.bazel")
    for name in ("WORKSPACE", "MODULE.bazel"):
        (example.folder / name).touch()
    names = ["simple", "full"] if foreign else ["simple", "full", "wrapped"]
    options = ["--spawn_strategy=local", "--symlink_prefix=made-", *_offline(tmp_path / "rules")]
    options += [f"--repo_env=CC={example.compiler('c')}"] if foreign else []
    bazel = ["bazel", f"--output_user_root={tmp_path / 'bazel'}"]
    try:
        example.call(*bazel, "build", *options, *(f"//:{name}" for name in names))
        example.check(example.folder / "made-bin", names)
    finally:
        subprocess.run([*bazel, "shutdown"], cwd=example.folder, check=False)
        _make_writable(tmp_path / "bazel")


def _offline(folder: Path) -> list[str]:
    """Options for a Bazel without its network: rules that are built in under the old names."""
    version = subprocess.run(["bazel", "--version"], capture_output=True, text=True, check=True)
    if "no_version" not in version.stdout and " 4." not in version.stdout:
        return []
    for language, rules in _BUILT_IN.items():
        place = folder / ("python" if language == "py" else language)
        place.mkdir(parents=True)
        (place / "BUILD.bazel").touch()
        lines = [f"{language}_{rule} = native.{language}_{rule}\n" for rule in rules]
        (place / "defs.bzl").write_text("".join(lines))
    for name in ("WORKSPACE", "BUILD.bazel"):
        (folder / name).touch()
    return [f"--override_repository={name}={folder}" for name in _REPOSITORIES]


def _make_writable(folder: Path) -> None:
    """Bazel takes away the right to change its outputs, so pytest could not remove them."""
    for path in folder.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
