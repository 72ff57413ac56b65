"""Makes `import cuvil`, the commands and the plugins work from the sources, in this interpreter.

    dev_install.py FOLDER...    those without a pyproject.toml are left out

An editable install would do that too, but tests under Bazel would see it: a test whose target lacks
a dependency would pass, and stay a cached pass after that dependency broke. So the path file that
is written here adds nothing in a process that Bazel started, and neither do its children.
"""

import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Any

import dist_info

_PATH_FILE = "cuvil_dev.pth"
_GUARD = "'RUNFILES_DIR' in os.environ or 'TEST_SRCDIR' in os.environ"
_SCRIPT = """\
#!{python}
import sys
from {module} import {function}

sys.exit({function}())
"""


def write_metadata(folder: Path, project: dict[str, Any]) -> None:
    """Writes the dist-info of a [project] table below `folder`."""
    info = folder / f"{project['name'].replace('-', '_')}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(dist_info.metadata(project), encoding="utf-8")
    (info / "entry_points.txt").write_text(dist_info.entry_points(project), encoding="utf-8")


def write_scripts(project: dict[str, Any]) -> None:
    """Writes the console scripts of a [project] table beside the interpreter."""
    for name, target in project.get("scripts", {}).items():
        module, _, function = target.partition(":")
        script = Path(sysconfig.get_path("scripts"), name)
        text = _SCRIPT.format(python=sys.executable, module=module, function=function)
        script.write_text(text, encoding="utf-8")
        script.chmod(0o755)


def main() -> None:
    """Installs every package that the command line names, instead of what was there before."""
    folders = [Path(name).resolve() for name in sys.argv[1:]]
    packages = [folder for folder in folders if (folder / "pyproject.toml").exists()]
    metadata = Path(sys.prefix, "cuvil_dev")
    shutil.rmtree(metadata, ignore_errors=True)
    for package in packages:
        project = dist_info.read_project(package / "pyproject.toml")
        write_metadata(metadata, project)
        write_scripts(project)
    paths = [str(path) for path in [*packages, metadata]]
    line = f"import os, sys; sys.path.extend([] if {_GUARD} else {paths})\n"
    Path(sysconfig.get_path("purelib"), _PATH_FILE).write_text(line, encoding="utf-8")


if __name__ == "__main__":
    main()
