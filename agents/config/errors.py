"""Errors of a configuration, and of a request: key, what was expected and what was found.

All that reads a configuration may raise a `ConfigError`, and all that reads a request a
`QueryError`; both name the key.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from ldpstream.mechanisms.base.checks import unknown

REFUSED: Final = "refused"
"""The type of pydantic's errors that `refused` makes; `problem` in their context is the text."""

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

_LENGTHS: Final = {
    "too_long": "at most",
    "too_short": "at least",
    "string_too_long": "at most",
    "string_too_short": "at least",
}
# Keys that `init` wrote once.
_GONE: Final = {"worker.store": "this key is gone: delete the line; state is kept in memory"}


def expected(what: str, got: object) -> str:
    """Return `expected WHAT, got GOT`, with `got` as TOML would write it."""
    return f"expected {what}, got {shown(got)}"


def shown(value: object) -> str:
    """Return a value as TOML would write it, shortened."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    written = json.dumps(value, ensure_ascii=False, default=str)
    # JSON does not escape all characters that end a line, such as U+0085 or U+2028.
    text = "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in written)
    return text if len(text) <= 60 else f"{text[:57]}..."


def refused(what: str, got: object) -> PydanticCustomError:
    """Return the error that a pydantic validator raises for `expected WHAT, got GOT`."""
    return PydanticCustomError(REFUSED, "{problem}", {"problem": expected(what, got)})


class ConfigError(ValueError):
    """An invalid configuration.

    The message is `FILE: PATH: PROBLEM`, with another line for each further problem, for example::

        ldpstream.toml: collection.checkins.window.hop: expected at most size (1h), got 2h
    """

    def __init__(
        self, path: str, problem: str, *, file: str = "", others: Sequence["ConfigError"] = ()
    ) -> None:
        line = ": ".join(text for text in (file, path, problem) if text)
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
        return _together(
            [ConfigError(error.path, error.problem, file=file) for error in self.each()]
        )


class Problems:
    """Collects the errors of independent parts, to report them together."""

    def __init__(self) -> None:
        self._errors: list[ConfigError] = []

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Collect what the block raises, and continue after it."""
        try:
            yield
        except ConfigError as error:
            self._errors += error.each()

    def check(self) -> None:
        """Raise the collected errors, if any."""
        if self._errors:
            raise _together(
                list({error.path: error for error in reversed(self._errors)}.values())[::-1]
            )


def _together(errors: Sequence[ConfigError]) -> ConfigError:
    first, *further = errors
    return ConfigError(first.path, first.problem, file=first.file, others=further)


def unknown_key(key: str, keys: Sequence[str]) -> str:
    """Return the error text for an unknown key, with a suggestion if a known one is similar."""
    return f"{unknown(key, keys)}; expected one of {', '.join(keys)}"


def key_path(keys: Sequence[str | int]) -> str:
    """Join keys with dots, quoting them as in TOML."""
    texts = []
    for key in keys:
        if isinstance(key, int):
            texts.append(f"[{key}]")
        else:
            texts.append(f".{key if _BARE_KEY.fullmatch(key) else json.dumps(key)}")
    return "".join(texts).removeprefix(".")


def from_validation(error: ValidationError, known_keys: Mapping[str, Sequence[str]]) -> ConfigError:
    """Turn pydantic's errors into ours.

    `known_keys` lists the keys of each table, by its path with names of collections and of
    attributes as `*`.
    """
    errors = []
    for detail in error.errors(include_url=False):
        keys = [key for key in detail["loc"] if key != "[key]"]
        errors.append(ConfigError(key_path(keys), _problem(detail, keys, known_keys)))
    return _together(errors)


def request_problem(error: ValidationError, known_keys: Mapping[str, Sequence[str]]) -> str:
    """Return the first invalid key of a request, what was expected there and what was found.

    `known_keys` lists the keys of the request, by an empty name, and of the entries of its lists.
    """
    names = {name for keys in known_keys.values() for name in keys}
    # What else is in a path names the forms that a value may have.
    problems = [
        ([key for key in detail["loc"] if isinstance(key, int) or key in names], detail)
        for detail in error.errors(include_url=False)
    ]
    # Of these forms, the one that fits furthest is meant.
    about = [problem for problem in problems if problem[0][:2] == problems[0][0][:2]]
    path, first = max(about, key=lambda problem: len(problem[1]["loc"]))
    alike = [
        problem for at, problem in about if at == path and len(problem["loc"]) == len(first["loc"])
    ]
    where = key_path(path) or "body"
    match first["type"]:
        case "json_invalid":
            return f"{where}: expected JSON: {first['ctx']['error']}"
        case "missing":
            return f"{where}: expected a value, got none"
        case "extra_forbidden":
            *_, key = first["loc"]
            above = path[:-1] if key in names else path
            unknown = unknown_key(str(key), known_keys[str(above[0]) if above else ""])
            return f"{key_path([*above, key])}: {unknown}"
    if first["type"] == REFUSED:
        return f"{where}: {first['ctx']['problem']}"
    expectation = " or ".join(dict.fromkeys(map(_wanted, alike))).replace("a table", "an object")
    return f"{where}: {expected(expectation, first['input'])}"


def _problem(
    detail: ErrorDetails, keys: Sequence[str | int], known_keys: Mapping[str, Sequence[str]]
) -> str:
    if detail["type"] == REFUSED:
        return str(detail["ctx"]["problem"])
    if detail["type"] == "extra_forbidden":
        # `collection.NAME`, and `collection.NAME.publish.attributes.NAME`.
        named = {1, 4} if keys[0] == "collection" else set()
        table = ["*" if i in named else key for i, key in enumerate(keys[:-1])]
        gone = _GONE.get(key_path(keys))
        return gone or unknown_key(str(keys[-1]), known_keys[key_path(table)])
    return expected(_wanted(detail), detail["input"])


def _wanted(detail: ErrorDetails) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "literal_error":
        choices = str(context["expected"]).replace("'", '"')
        return f"one of {choices}" if " or " in choices else choices
    if kind in _LIMITS:
        word, limit = _LIMITS[kind]
        return f"{word} {context[limit]}"
    if kind in _LENGTHS:
        unit = "characters" if kind.startswith("string") else "entries"
        return f"{_LENGTHS[kind]} {context.get('min_length', context.get('max_length'))} {unit}"
    return _TYPES.get(kind, detail["msg"])
