"""Checks of raw input: values as TOML parses them, rows of CSV files, numbers that people type."""

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.numbers import read_decimal, read_number, trimmed
from ldpstream.mechanisms.exact.dyadic import budget

_LONGEST_NUMBER = 40


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether the value is an integer; booleans do not count as integers."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_integer(value: object) -> TypeGuard["int | np.integer[Any]"]:
    """Return whether a label is an integer, of Python or numpy; booleans and durations are none."""
    return is_whole(value) or (
        isinstance(value, np.integer) and not isinstance(value, np.timedelta64)
    )


def describe(value: object) -> str:
    """Return a short description of a raw value for an error message."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value) if abs(value) < 10**20 or isinstance(value, float) else "a huge number"
    if isinstance(value, str):
        return repr(value) if len(value) <= 40 else f"a text of {len(value)} characters"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return "a table" if isinstance(value, dict) else f"a {type(value).__name__}"


def number_text(number: float) -> str:
    """Return a number as people write it: all digits, and no ".0" after a whole number.

    >>> number_text(1700086400.5), number_text(100.0)
    ('1700086400.5', '100')
    """
    return repr(float(number)).removesuffix(".0")


def rounded_text(number: float) -> str:
    """Return a number in the digits that all doubles keep: 15, and all of a whole number.

    >>> rounded_text(0.1 + 0.2), rounded_text(1 / 3), rounded_text(1700000000123.0)
    ('0.3', '0.333333333333333', '1700000000123')
    """
    return number_text(number if number.is_integer() else float(f"{number:.15g}"))


def float_text(number: np.floating[Any]) -> str:
    """Return the shortest decimal of a float of any precision.

    `str` prints fewer digits under `numpy.set_printoptions(legacy="1.13")`.
    """
    return np.format_float_scientific(number)


def real_number(value: object) -> float:
    """Return the value as a float, or NaN (which no domain contains) if it is not a number.

    A float of lower precision is read as the decimal that it prints as: the float32 next to 0.3
    becomes 0.3.
    """
    if isinstance(value, np.float32 | np.float16):
        return float(float_text(value))
    if not (isinstance(value, float | np.floating | Decimal) or is_integer(value)):
        return math.nan
    try:
        return float(value)
    except (OverflowError, ValueError):
        # Too large an integer, or a signalling NaN.
        return math.nan


def read_epsilon(value: object, path: str, *, infinite: bool = False) -> float:
    """Return a privacy budget: a number above 0, finite unless `infinite` allows otherwise."""
    expected = f"a {'' if infinite else 'finite '}number above 0, got {describe(value)}"
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise SpecError(path, expected)
    try:
        epsilon = float(value)
    except OverflowError as error:
        raise SpecError(path, expected) from error
    if math.isnan(epsilon) or epsilon <= 0 or (math.isinf(epsilon) and not infinite):
        raise SpecError(path, expected)
    return epsilon


def read_budget(value: object, path: str, *, infinite: bool = True) -> Fraction | None:
    """Return a budget of a policy as an exact rational of at least 0, or None for infinity.

    A float or a decimal text becomes the smaller of the decimal as written and its double
    (`dyadic.budget`), so that the guarantee holds for both. A Fraction is taken as it is.

    Raises:
        SpecError: naming `path`, if the value is negative, NaN, not a number, too large for a
            double, or infinite without `infinite`.

    >>> read_budget("0.1", "policy"), read_budget("inf", "policy")
    (Fraction(1, 10), None)
    """
    expected = f"a budget of at least 0{' or inf' if infinite else ''}, got {describe(value)}"
    if isinstance(value, bool) or not isinstance(value, int | float | str | Fraction):
        raise SpecError(path, expected)
    text = trimmed(value) if isinstance(value, str) else None
    if text is not None and len(text) > _LONGEST_NUMBER:
        raise SpecError(path, expected)
    try:
        number = float(value) if text is None else math.inf if text == "inf" else read_number(text)
    except (ValueError, OverflowError):
        raise SpecError(path, expected) from None
    if math.isnan(number) or number < 0 or (isinstance(value, Fraction) and value < 0):
        raise SpecError(path, expected)
    if math.isinf(number):
        if not infinite:
            raise SpecError(path, expected)
        return None
    if isinstance(value, Fraction):
        return value
    if text is not None and number > 0:
        return min(budget(number), read_decimal(text))
    return budget(number)


def unknown(key: str, known: Iterable[str]) -> str:
    """Return `unknown key`, with the name from `known` that was probably meant, if any.

    >>> unknown("epsilom", ["mechanism", "epsilon"]), unknown("colour", ["epsilon"])
    ('unknown key (did you mean epsilon?)', 'unknown key')
    """
    return f"unknown key{guess(key, known)}"


def guess(text: str, known: Iterable[str]) -> str:
    """Return ` (did you mean ...?)` with the nearest of the known texts; empty if none is near."""
    meant = get_close_matches(text, list(known), n=1, cutoff=0.65)
    return f" (did you mean {meant[0]}?)" if meant else ""


def check_keys(raw: object, allowed: frozenset[str], path: str) -> dict[str, object]:
    """Return the value as a table, after checking that all its keys are allowed."""
    if not isinstance(raw, dict):
        raise SpecError(path, f"a table, got {describe(raw)}")
    for key in raw:
        if key not in allowed:
            known = sorted(allowed)
            what = f"one of the keys {', '.join(known)}{guess(str(key), known)}"
            raise SpecError(f"{path}.{key}", what)
    return raw


def without_repeats(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """Return an object's fields; ValueError where a key is repeated: JSON would take the last."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a repeated key")
    return fields


def read_rows(raw: object, base: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each row of a CSV file as `(place, cells)`, with a place such as `file line 3`.

    Error messages name the place. The path is relative to the folder `base`. The file is CSV in
    UTF-8; blank lines are skipped.

    Raises:
        SpecError: if the path is not a text, or the file cannot be read as CSV.
    """
    if not isinstance(raw, str) or not raw:
        raise SpecError("file", f"the path of a CSV file, got {describe(raw)}")
    try:
        with (base / raw).open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.reader(lines, strict=True)
            for row in reader:
                if row:
                    yield f"file line {reader.line_num}", row
    except OSError as error:
        raise SpecError("file", f"a readable file, got {raw!r}: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise SpecError("file", f"CSV in UTF-8, got {raw!r}: {error}") from error
