"""Builds one wheel from a list of files; the action behind the `wheel` rule.

    build_wheel.py @PARAMETERS   lines: package folder, output folder, then "path=place" pairs

The files are copied, each to its place, into an empty folder and built there: what is not listed
cannot get in, and the source tree stays clean. The same files give the same bytes.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# The oldest time that a zip archive can hold is 1980-01-01.
_EPOCH = "315619200"


def copy_tree(pairs: list[str], root: Path) -> None:
    """Copies every "path=place" of `pairs` to its place under `root`."""
    for pair in pairs:
        source, _, place = pair.partition("=")
        target = root / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def build(package: Path, out: Path) -> None:
    """Builds the wheel of the folder `package` into `out` with the tools installed here."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env["SOURCE_DATE_EPOCH"] = _EPOCH
    env["HOME"] = str(package)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation"]
    result = subprocess.run(
        [*command, "--outdir", str(out), str(package)],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if result.returncode:
        sys.exit(result.stdout)


def main() -> None:
    """Reads the parameter file and builds."""
    parameters = Path(sys.argv[1].removeprefix("@")).read_text(encoding="utf-8").splitlines()
    package, out, pairs = parameters[0], Path(parameters[1]).resolve(), parameters[2:]
    with tempfile.TemporaryDirectory() as scratch:
        copy_tree(pairs, Path(scratch))
        licence = Path(scratch, "LICENSE")
        if licence.exists():
            shutil.move(licence, Path(scratch, package, "LICENSE"))
        build(Path(scratch, package), out)


if __name__ == "__main__":
    main()
