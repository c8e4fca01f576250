"""Methods without arguments that compute their result once."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

_Owner = TypeVar("_Owner")
_Result = TypeVar("_Result")


def once(method: Callable[[_Owner], _Result]) -> Callable[[_Owner], _Result]:
    """Keep a method's result in its instance, like `functools.cached_property`."""
    place = method.__qualname__

    @wraps(method)
    def kept(self: _Owner) -> _Result:
        known = vars(self)
        if place not in known:
            known[place] = method(self)
        found: _Result = known[place]
        return found

    return kept
