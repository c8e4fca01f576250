"""Names that a package hands on from its modules, loaded when they are first asked for (PEP 562).

Importing one module of a package runs the package's `__init__`: were that to import all that the
package offers, whoever needs one name would load everything.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def handed_on(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package: `modules` names public names, by their module.

    No name may be that of a module of the package, which would hide it once imported.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        found = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    return find


def brought(package: str, extra: str) -> str:
    """Return how to install a package that an extra of this one brings."""
    return f"{package}, which the extra {extra} brings: pip install 'ldpstream[{extra}]'"


def imported(module: str, extra: str, what: str, otherwise: str = "") -> Any:
    """Return a module that an extra brings, for `what` needs it.

    Raises:
        ImportError: naming what to install, or to do `otherwise`, where it is not there.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f"{what} needs {brought(package, extra)}{otherwise}") from error
