"""The driver is a shared library beside the package: not a module, but built like one."""

from setuptools import Extension, setup

from cuvil_runtime import include_dir

setup(
    ext_modules=[
        Extension(
            "cuvil_backend_npu.driver",
            ["cuvil_backend_npu/driver.c", "cuvil_backend_npu/npu.c"],
            include_dirs=[include_dir()],
            depends=["cuvil_backend_npu/npu.h"],
        )
    ]
)
