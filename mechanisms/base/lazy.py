"""Work that waits for its first use: loading public names and extras, and computing attributes.

Importing any module of a package runs the package's `__init__`. If that imported everything the
package offers, whoever needs one name would load it all (PEP 562).
"""

import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from importlib import import_module
from threading import RLock
from typing import TYPE_CHECKING, Any


def handed_on(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a package; `modules` maps each module to its public names.

    The names of a module are separated by spaces. No name equals the name of a module of the
    package: once imported, the module would hide it.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return find


def brought(package: str, extra: str) -> str:
    """Return how to install a package that belongs to an extra of ldpstream."""
    return f"{package}, which the extra {extra} brings: pip install 'ldpstream[{extra}]'"


def imported(module: str, extra: str, what: str, otherwise: str = "") -> Any:
    """Return a module that an extra installs and that `what` needs.

    Raises:
        ImportError: if it is not installed, naming what to install, followed by `otherwise`.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f"{what} needs {brought(package, extra)}{otherwise}") from error


if TYPE_CHECKING:
    locked_cached_property = cached_property
else:

    class locked_cached_property(cached_property):  # noqa: N801 (a decorator)
        """A `functools.cached_property` of which threads that ask at once wait for one result.

        A decoder may take seconds to build, and much memory. All instances share the lock, so two
        results are not computed at the same time either.
        """

        def __init__(self, compute: Callable[[Any], Any]) -> None:
            super().__init__(compute)
            self._waiting = RLock()

        def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
            if instance is None:
                return self
            with self._waiting:
                return super().__get__(instance, owner)
