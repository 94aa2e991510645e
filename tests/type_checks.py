"""jaxtyping's decorator of functions and data classes, at a tenth of its cost.

jaxtyping binds arguments to the signature, checks them before a call and again after it, and builds
both checks when a module is imported. Here a function's check is built when it is first called,
arguments are checked once, and of very many calls most are not: together that was nearly half of
the tests' time.
"""

import dataclasses
import inspect
from collections.abc import Callable
from functools import partial, wraps
from types import FunctionType
from typing import Any

import jaxtyping
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import TypeCheckError, config
from jaxtyping._decorator import _destring_annotation
from jaxtyping._storage import pop_shape_memo, push_shape_memo, shape_str

ALWAYS, EVERY = 50, 20
"""Calls of each function in a process that are checked, and one in so many of those that follow."""
in_full = jaxtyping.jaxtyped
"""What jaxtyping does itself."""


def checked(target: Any = None, *, typechecker: Callable[..., Any]) -> Any:
    """Return a function or data class with its types checked, for ``jaxtyping.jaxtyped``.

    Dimension letters have one size in all arguments and the result of a call.
    """
    if target is None:
        return partial(checked, typechecker=typechecker)
    if inspect.isclass(target):
        if dataclasses.is_dataclass(target) and not is_checked(target.__init__):
            target.__init__ = checked(target.__init__, typechecker=typechecker)
        return target
    if isinstance(target, classmethod | staticmethod):
        return type(target)(checked(target.__func__, typechecker=typechecker))
    if isinstance(target, property):
        parts = (target.fget, target.fset, target.fdel)
        return property(*(part and checked(part, typechecker=typechecker) for part in parts))
    return on_first_call(target, typechecker)


def is_checked(function: Callable[..., Any]) -> bool:
    """Whether ``checked`` has made a function."""
    return hasattr(function, "__checked__")


def on_first_call(function: Callable[..., Any], typechecker: Callable[..., Any]) -> Any:
    """Return the function with its types checked; the check is built when it is first called, and
    left out of most calls in long loops.

    Other types raise ``TypeCheckError``, as jaxtyping does.
    """
    check: Callable[..., Any] | None = None
    calls = 0

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        nonlocal check, calls
        calls += 1
        if config.jaxtyping_disable or (calls > ALWAYS and calls % EVERY):
            return function(*args, **kwargs)
        if check is None:
            check = with_types(function, typechecker)
        memos = push_shape_memo({})
        try:
            return check(*args, **kwargs)
        except BeartypeCallHintViolation as violation:
            raise TypeCheckError(f"{violation}\n{shape_str(memos)}") from violation
        finally:
            pop_shape_memo()

    call.__checked__ = True
    return call


def with_types(function: Callable[..., Any], typechecker: Callable[..., Any]) -> Any:
    """Return a copy of a function that checks its types, in the sizes of the caller's context.

    Generators, functions already wrapped and sizes that refer to arguments are left to jaxtyping.
    """
    hints = inspect.get_annotations(function)
    if (
        not isinstance(function, FunctionType)
        or hasattr(function, "__wrapped__")
        or inspect.isgeneratorfunction(function)
        or any("{" in str(hint) for hint in hints.values())
    ):
        return in_full(function, typechecker=typechecker)
    copy = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__
    copy.__annotations__ = {
        name: _destring_annotation(hint, function.__globals__) for name, hint in hints.items()
    }
    return typechecker(copy)
