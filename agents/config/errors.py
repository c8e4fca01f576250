"""Errors of a configuration: file, key, what was expected and what was found."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ldpstream.agents.query.errors import REFUSED, expected
from ldpstream.mechanisms.base.checks import unknown

_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_TYPES: Final = {
    "string_type": "a string",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "dict_type": "a table",
    "model_type": "a table",
    "list_type": "a list",
    "tuple_type": "a list",
}
_LIMITS: Final = {"greater_than_equal": ("at least", "ge"), "less_than_equal": ("at most", "le")}


class ConfigError(ValueError):
    """An invalid configuration.

    The message is `FILE: PATH: PROBLEM`, with another line for each further problem, for example::

        ldpstream.toml: collection.checkins.window.hop: expected at most size (1h), got 2h
    """

    def __init__(
        self, path: str, problem: str, *, file: str = "", others: Sequence["ConfigError"] = ()
    ) -> None:
        line = ": ".join(part for part in (file, path, problem) if part)
        super().__init__("\n".join([line, *map(str, others)]))
        self.path = path
        """The key, with dots between tables; empty for the file as a whole."""
        self.problem = problem
        self.file = file
        self.others = tuple(others)
        """Further problems, each without others of its own."""

    def each(self) -> list["ConfigError"]:
        """Return every problem as a separate error."""
        return [ConfigError(self.path, self.problem, file=self.file), *self.others]

    def in_file(self, file: str) -> "ConfigError":
        """Return the same error with the file's name in front."""
        return _together([ConfigError(one.path, one.problem, file=file) for one in self.each()])


class Problems:
    """Collects the errors of independent parts, to report them together."""

    def __init__(self) -> None:
        self._found: list[ConfigError] = []

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Collect what the block raises, and continue after it."""
        try:
            yield
        except ConfigError as error:
            self._found += error.each()

    def check(self) -> None:
        """Raise the collected errors, if any.

        Raises:
            ConfigError: with all of them, but only the first for each key.
        """
        if self._found:
            raise _together(list({one.path: one for one in reversed(self._found)}.values())[::-1])


def _together(errors: Sequence[ConfigError]) -> ConfigError:
    first, *others = errors
    return ConfigError(first.path, first.problem, file=first.file, others=others)


def unknown_key(key: str, known: Sequence[str]) -> str:
    """Return the error text for an unknown key, with a suggestion if a known one is similar."""
    return f"{unknown(key, known)}; expected one of {', '.join(known)}"


def key_path(keys: Sequence[str | int]) -> str:
    """Join keys with dots, quoting them as in TOML."""
    parts = []
    for key in keys:
        if isinstance(key, int):
            parts.append(f"[{key}]")
        else:
            parts.append(f".{key if _BARE_KEY.fullmatch(key) else json.dumps(key)}")
    return "".join(parts).removeprefix(".")


def from_validation(error: ValidationError, known: Mapping[str, Sequence[str]]) -> ConfigError:
    """Turn pydantic's errors into ours.

    `known` lists the keys of each table, by the table's path with every collection's name as `*`.
    """
    found = []
    for detail in error.errors(include_url=False):
        keys = [key for key in detail["loc"] if key != "[key]"]
        found.append(ConfigError(key_path(keys), _problem(detail, keys, known)))
    return _together(found)


def _problem(
    detail: ErrorDetails, keys: Sequence[str | int], known: Mapping[str, Sequence[str]]
) -> str:
    kind, got, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind == REFUSED:
        return str(context["problem"])
    if kind == "extra_forbidden":
        table = ["*" if i == 1 and keys[0] == "collection" else k for i, k in enumerate(keys[:-1])]
        return unknown_key(str(keys[-1]), known[key_path(table)])
    if kind == "literal_error":
        choices = str(context["expected"]).replace("'", '"')
        return expected(f"one of {choices}" if " or " in choices else choices, got)
    if kind in _LIMITS:
        word, limit = _LIMITS[kind]
        return expected(f"{word} {context[limit]}", got)
    return expected(_TYPES.get(kind, detail["msg"]), got)
