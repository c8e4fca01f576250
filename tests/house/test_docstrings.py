"""Every public method says what it does, or overrides one that does."""

import inspect
import pkgutil
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module

import ldpstream


def code(member: object) -> bool:
    """Return whether a class's member is a method or a property."""
    kinds = (property, classmethod, staticmethod, cached_property)
    return isinstance(member, kinds) or inspect.isfunction(member)


def silent(kind: type) -> Iterator[str]:
    """Yield the public methods and properties of a class that nothing documents."""
    for name, member in vars(kind).items():
        inner = getattr(member, "__func__", getattr(member, "func", member))
        # A function of another name is a field's default.
        own = isinstance(inner, property) or (inspect.isfunction(inner) and inner.__name__ == name)
        same = (vars(base).get(name) for base in kind.__mro__)
        if own and name[0] != "_" and not any(inspect.getdoc(one) for one in same if code(one)):
            yield f"{kind.__module__}.{kind.__qualname__}.{name}"


def test_every_public_method_is_documented_here_or_in_a_base():
    found = []
    for one in pkgutil.walk_packages(ldpstream.__path__, "ldpstream."):
        if one.name.endswith("__main__"):
            continue
        module = import_module(one.name)
        for kind in vars(module).values():
            if inspect.isclass(kind) and kind.__module__ == one.name and kind.__name__[0] != "_":
                found += silent(kind)
    assert found == []


def test_a_method_that_nothing_documents_is_found():
    class Base:
        def said(self) -> None:
            """Do something."""

    class Derived(Base):
        def said(self) -> None:
            pass

        def silent(self) -> None:
            pass

        @property
        def shape(self) -> int:
            return 1

    assert [name.rpartition(".")[2] for name in silent(Derived)] == ["silent", "shape"]
