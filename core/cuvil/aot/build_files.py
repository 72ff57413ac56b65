"""Files that let C projects find a compiled model: pkg-config's and CMake's."""

from __future__ import annotations

from collections.abc import Collection

_CMAKE_LIBRARY = """\
if(NOT TARGET {target})
  add_library({target} {kind} IMPORTED)
  set_target_properties({target} PROPERTIES
    IMPORTED_LOCATION "${{CMAKE_CURRENT_LIST_DIR}}/{file}"
    INTERFACE_INCLUDE_DIRECTORIES
      "${{CMAKE_CURRENT_LIST_DIR}};${{CMAKE_CURRENT_LIST_DIR}}/include"{more})
endif()
"""


def pkg_config(name: str, version: str, kinds: Collection[str]) -> str:
    """`<name>.pc`, which works wherever the folder is moved. kinds: "so", "a" or both."""
    private = "-lpthread"
    libraries = f"-L${{pcfiledir}} -l{name}"
    if "so" not in kinds:
        libraries, private = f"{libraries} {private}", ""
    return f"""\
Name: {name}
Description: A model compiled by Cuvil
Version: {version}
Cflags: -I${{pcfiledir}} -I${{pcfiledir}}/include
Libs: {libraries}
Libs.private: {private}
"""


def cmake_config(name: str, kinds: Collection[str]) -> str:
    """`<name>Config.cmake`: target `<name>::<name>`, and `<name>::static` where both exist."""
    parts = [f"# find_package({name}) with {name}_DIR or CMAKE_PREFIX_PATH set to this folder.\n"]
    if "so" in kinds:
        soname = f'\n    IMPORTED_SONAME "lib{name}.so"'
        parts.append(_library(f"{name}::{name}", "SHARED", f"lib{name}.so", soname))
    if "a" in kinds:
        target = f"{name}::static" if "so" in kinds else f"{name}::{name}"
        threads = '\n    INTERFACE_LINK_LIBRARIES "pthread"'
        parts.append(_library(target, "STATIC", f"lib{name}.a", threads))
    return "".join(parts)


def _library(target: str, kind: str, file: str, more: str) -> str:
    return _CMAKE_LIBRARY.format(target=target, kind=kind, file=file, more=more)
