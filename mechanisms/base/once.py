"""Methods without arguments that compute their result once."""

from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import TypeVar

_Owner = TypeVar("_Owner")
_Result = TypeVar("_Result")


def once(method: Callable[[_Owner], _Result]) -> Callable[[_Owner], _Result]:
    """Keep a method's result in its instance, like `functools.cached_property`.

    Threads that ask at once wait for one result: a decoder may take seconds to build, and much
    memory. All instances share the lock, so two results are not computed at the same time either.
    """
    place, lock = f"{method.__module__}.{method.__qualname__}", RLock()

    @wraps(method)
    def kept(self: _Owner) -> _Result:
        known = vars(self)
        if place not in known:
            with lock:
                if place not in known:
                    known[place] = method(self)
        found: _Result = known[place]
        return found

    return kept
