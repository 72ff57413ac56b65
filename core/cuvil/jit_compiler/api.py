"""`cuvil.jit`, and `explain` for what it made."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, overload

from cuvil.errors import OptionError
from cuvil.jit_compiler.explanation import Explanation, explanation_of
from cuvil.jit_compiler.function import Compiled
from cuvil_runtime import _runtime

Function = TypeVar("Function", bound=Callable[..., Any])


@overload
def jit(function: Function) -> Function: ...
@overload
def jit(
    function: None = None, *, target: str = "cpu", opt_level: int = 2
) -> Callable[[Function], Function]: ...


def jit(function: Any = None, *, target: str = "cpu", opt_level: int = 2) -> Any:
    """Compiles a Python function to native code when it is called; a decorator.

    Code is made per signature: ints (of 64 bits), floats, bools, strings, None, tuples, lists and
    dicts of one type, numpy arrays and scalars. The result is that of the interpreter, which runs
    whatever cannot be compiled, and whatever raises; `cuvil.explain` tells which and why.

    target: this machine, as for `cuvil.compile`. opt_level: 0 to 3. Raises OptionError.
    """
    if function is None:
        return functools.partial(jit, target=target, opt_level=opt_level)
    if opt_level not in (0, 1, 2, 3):
        raise OptionError(f"opt_level is 0, 1, 2 or 3, not {opt_level!r}")
    if isinstance(function, _runtime.NativeFunction):
        return function
    if not inspect.isfunction(function):
        raise OptionError(f"cuvil.jit takes a Python function, not {function!r}")
    return _wrapped(function, Compiled(function, target, opt_level))


def _wrapped(function: Callable[..., Any], compiled: Compiled) -> Any:
    parameters = inspect.signature(function).parameters.values()
    plain = all(p.kind == p.POSITIONAL_OR_KEYWORD for p in parameters)
    names = tuple(p.name for p in parameters) if plain else ()
    defaults = (function.__defaults__ or ()) if plain else ()
    if len(names) > _runtime.MAX_PARAMETERS:
        plain, names, defaults = False, (), ()
    made = _runtime.make_function(function, compiled, names, defaults)
    functools.update_wrapper(made, function)
    compiled.function = made
    if not plain:
        compiled.interpret("parameters by position only, by keyword only, *, **, or too many")
    return made


def explain(function: Any, *args: Any, **kwargs: Any) -> Explanation:
    """How a jitted function runs: signatures with code, and what stays in the interpreter and why.

    args, kwargs: those of a call to be looked at; it is not run. Raises OptionError for something
    that `cuvil.jit` did not make.
    """
    if not isinstance(function, _runtime.NativeFunction):
        raise OptionError(f"cuvil.explain takes a function that cuvil.jit made, not {function!r}")
    return explanation_of(function._compiler, args, kwargs)
