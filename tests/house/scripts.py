"""The programs of `.ci`, which are in no package."""

import importlib.util
import sys
from types import ModuleType

from tests.house.rooms import ROOT


def script(name: str) -> ModuleType:
    """Return the module of `.ci/NAME.py`."""
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # They import each other as they do where one of them is run.
    sys.path.insert(0, str(ROOT / ".ci"))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT / ".ci"))
    return module
