"""All attacks, found by the modules of this folder: each that has some names them in `ATTACKS`."""

import pkgutil
from importlib import import_module

import tests.attack
from tests.attack.stand import Attack


def all_attacks() -> list[Attack]:
    """Return every attack, by the name of its module and in that module's order."""
    names = sorted(found.name for found in pkgutil.iter_modules(tests.attack.__path__))
    modules = [import_module(f"tests.attack.{name}") for name in names if name not in _OTHERS]
    return [attack for module in modules for attack in getattr(module, "ATTACKS", ())]


_OTHERS = {"__main__", "attacks", "stand", "test_attacks"}
