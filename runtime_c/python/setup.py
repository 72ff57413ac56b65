"""Builds the C runtime and its binding into one extension module."""

from pathlib import Path

from pybind11.setup_helpers import Pybind11Extension, build_ext
from setuptools import setup
from setuptools.command.build_py import build_py

RUNTIME = Path("..")
NOT_BUILT = ("unity.c",)
C_SOURCES = sorted(str(p) for p in (RUNTIME / "src").glob("*.c") if p.name not in NOT_BUILT)
CC_SOURCES = sorted(str(p) for p in Path("src").glob("*.cc"))
HEADERS = sorted(
    str(p)
    for pattern in ("src/*.h", "include/cuvil/*.h", "python/src/*.h")
    for p in RUNTIME.glob(pattern)
)
INCLUDE = str(RUNTIME / "include")

runtime = (
    "cuvil_runtime",
    {
        "sources": C_SOURCES,
        "include_dirs": [INCLUDE],
        "cflags": ["-std=c11", "-O2", "-g0", "-fvisibility=hidden"],
        "obj_deps": {"": HEADERS},
    },
)

binding = Pybind11Extension(
    "cuvil_runtime._runtime",
    CC_SOURCES,
    include_dirs=[INCLUDE],
    depends=HEADERS,
    cxx_std=17,
    extra_compile_args=["-O2", "-g0"],
    extra_link_args=["-s"],
    libraries=["pthread", "dl"],
)


class BuildWithRuntime(build_ext):
    """Builds the static library of the C runtime before what links it."""

    def run(self) -> None:
        self.run_command("build_clib")
        super().run()


class CopyHeaders(build_py):
    """Adds the C headers, which compiled models are called with, to the package."""

    def run(self) -> None:
        super().run()
        target = Path(self.build_lib, "cuvil_runtime", "include", "cuvil")
        self.mkpath(str(target))
        for header in sorted((RUNTIME / "include" / "cuvil").glob("*.h*")):
            self.copy_file(str(header), str(target / header.name))


setup(
    ext_modules=[binding],
    libraries=[runtime],
    cmdclass={"build_ext": BuildWithRuntime, "build_py": CopyHeaders},
)
