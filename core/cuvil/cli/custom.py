"""`--custom`: a Python file or module that declares operators."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

from cuvil.errors import Error, OptionError

LOADED: set[str] = set()


def load_declarations(word: str) -> None:
    """Runs a Python file, or imports a module, once. OptionError where that fails.

    Files beside the file can be imported by it; the working folder is not searched.
    """
    if word in LOADED:
        return
    try:
        if word.endswith(".py") or "/" in word:
            _run(Path(word))
        else:
            importlib.import_module(word)
    except Error as error:
        raise OptionError(f"--custom {word}: {error}") from error
    except Exception as error:  # of the user's code
        raise OptionError(f"--custom {word}: {type(error).__name__}: {error}") from error
    LOADED.add(word)


def _run(path: Path) -> None:
    if not path.is_file():
        raise OptionError("there is no such file")
    name = f"cuvil_custom_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise OptionError("it is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
