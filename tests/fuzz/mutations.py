"""Damaged records, drawn from a seed: bytes of any format, and JSON."""

import json
import random
from collections.abc import Callable
from typing import Any

_NUMBERS = (0, 1, (1 << 31) - 1, (1 << 32) - 1, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
_WRONG = (
    *(None, True, False, 0, -1, 1.5, 1e308, 10**40, "", "x", "-1", "1_0", "\u0663", [], {}, [[]]),
    *({"a": 1}, float("nan"), float("inf"), "\ud800", "0" * 5_000, 10**400),
)
DEEP = (b"[" * 1_000, b"[" * 20_000, b'{"a":' * 20_000, b"[" * 10_000 + b"]" * 10_000)
ENDLESS = (b'"\\' * 20_000, b'"' * 20_001, b"9" * 40_000, b"-" * 1_000, b"\\" * 20_000)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Return a record with something changed, or random bytes."""
    return rng.choice(_WAYS)(bytearray(data), rng)


def mutated_json(true: Any, rng: random.Random) -> bytes:
    """Return the JSON of a value with something in it replaced, removed, added or nested."""
    kind = rng.randrange(10)
    if kind == 0:
        return rng.choice(DEEP)
    if kind == 1:
        return rng.choice(ENDLESS)
    if kind == 2:
        return mutated(json.dumps(true).encode(), rng)
    value = json.loads(json.dumps(true))
    holder: Any = {"": value}
    at: Any = ""
    while isinstance(holder[at], dict | list) and holder[at] and rng.random() < 0.8:
        holder = holder[at]
        at = rng.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    if kind == 3:
        return b"".join((rng.randbytes(2), json.dumps(value).encode("utf-16")))
    if kind == 4 and holder is not value and isinstance(holder, dict):
        del holder[at]
    elif kind == 5 and isinstance(holder, dict):
        holder[str(rng.choice(_WRONG))] = holder[at]
    else:
        holder[at] = rng.choice(_WRONG)
    return json.dumps(holder.get("", value) if isinstance(holder, dict) else value).encode()


def _random(_: bytearray, rng: random.Random) -> bytes:
    return rng.randbytes(rng.choice((0, 1, rng.randrange(200), rng.randrange(2_000))))


def _cut(data: bytearray, rng: random.Random) -> bytes:
    return bytes(data[: rng.randrange(len(data) + 1)])


def _longer(data: bytearray, rng: random.Random) -> bytes:
    return bytes(data) + rng.randbytes(rng.randint(1, 40))


def _flipped(data: bytearray, rng: random.Random) -> bytes:
    for _ in range(rng.choice((1, 1, 3, 20))):
        if data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def _huge(data: bytearray, rng: random.Random) -> bytes:
    """Overwrite some bytes with an extreme number."""
    width = rng.choice((1, 2, 4, 8))
    at = rng.randrange(max(1, len(data) - width + 1))
    number = rng.choice(_NUMBERS) & ((1 << 8 * width) - 1)
    data[at : at + width] = number.to_bytes(width, "little")
    return bytes(data)


def _moved(data: bytearray, rng: random.Random) -> bytes:
    """Repeat a part, or leave it out."""
    at, to = rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)
    return bytes(data[:at] + data[to:])


_WAYS: tuple[Callable[[bytearray, random.Random], bytes], ...] = (
    *(_random, _cut, _longer, _flipped, _flipped, _huge, _huge, _moved),
)
