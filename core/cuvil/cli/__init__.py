"""The `cuvil` command. What a command needs is imported when it runs, so that help is quick."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

__all__ = ["main"]

DEBUG = "--debug"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit status.

    0: done; 1: an error, told in one line on stderr, or a check that failed; 2: wrong usage. With
    `--debug` anywhere an error shows its traceback.
    """
    from cuvil.cli.app import app

    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = DEBUG in words
    warnings.showwarning = _show_warning
    try:
        app(args=[w for w in words if w != DEBUG], prog_name="cuvil")
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else int(done.code is not None)
    except KeyboardInterrupt:
        _say("interrupted")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if debug:
            raise
        interrupted = _came_from_interrupt(error)
        _say("interrupted" if interrupted else _message(error))
        return 130 if interrupted else 1
    return 0


def _came_from_interrupt(error: BaseException | None) -> bool:
    """Whether an error is what an extension module made of an interrupt while it was loaded."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _message(error: Exception) -> str:
    from cuvil.errors import Error

    if isinstance(error, Error):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    kind = type(error).__name__
    return f"internal error: {kind}: {error}\n(--debug shows where; please report it)"


def _say(text: str) -> None:
    print(f"cuvil: {text}", file=sys.stderr)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _say(f"warning: {message}")
