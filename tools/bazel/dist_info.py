"""Writes METADATA and entry_points.txt of a distribution from its pyproject.toml.

    dist_info.py pyproject.toml METADATA entry_points.txt

Enough of the core metadata for importlib.metadata: name, version, requirements, entry points.
"""

import sys
import tomllib
from pathlib import Path
from typing import Any


def metadata(project: dict[str, Any]) -> str:
    """The text of METADATA for a [project] table."""
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {project['version']}"]
    lines += [f"Requires-Dist: {requirement}" for requirement in project.get("dependencies", [])]
    for extra, requirements in project.get("optional-dependencies", {}).items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {name}; extra == "{extra}"' for name in requirements]
    return "\n".join(lines) + "\n"


def entry_points(project: dict[str, Any]) -> str:
    """The text of entry_points.txt for a [project] table: scripts and entry-point groups."""
    groups = dict(project.get("entry-points", {}))
    if "scripts" in project:
        groups["console_scripts"] = project["scripts"]
    sections = []
    for group, names in sorted(groups.items()):
        rows = [f"{name} = {target}" for name, target in sorted(names.items())]
        sections.append("\n".join([f"[{group}]", *rows]))
    return "\n\n".join(sections) + "\n"


def read_project(pyproject: Path) -> dict[str, Any]:
    """The [project] table of a pyproject.toml."""
    project: dict[str, Any] = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    return project


def main() -> None:
    """Writes the two files that the command line names."""
    source, metadata_file, entry_points_file = map(Path, sys.argv[1:])
    project = read_project(source)
    metadata_file.write_text(metadata(project), encoding="utf-8")
    entry_points_file.write_text(entry_points(project), encoding="utf-8")


if __name__ == "__main__":
    main()
