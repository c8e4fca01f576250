"""The programs of `.ci`, which are in no package."""

import importlib.util
from types import ModuleType

from tests.house.rooms import ROOT


def script(name: str) -> ModuleType:
    """Return the module of `.ci/NAME.py`."""
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
