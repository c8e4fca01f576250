"""Value lines: CSV without a header, one value a line, its time first where asked.

Errors name the line and what was expected there, never what stood there: values are private.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.terminal.errors import Refused
from ldpstream.agents.terminal.times import NearNow
from ldpstream.mechanisms.base.errors import ValueOutsideDomainError
from ldpstream.mechanisms.base.times import parse_time
from ldpstream.mechanisms.domains.parse import Domain
from ldpstream.mechanisms.exact.entropy import SystemEntropy

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Values:
    """A chunk of n value lines: value indices, and epoch milliseconds where lines have times."""

    indices: Integers
    times_ms: Integers | None


def read_values(
    stream: BinaryIO, domain: Domain, *, times: bool, chunk: int, near: NearNow | None = None
) -> Iterator[Values]:
    """Read all value lines, up to `chunk` at a time; `near` is which times they may have.

    Raises:
        Refused: naming the line, for a value outside the domain, an impossible or implausible
            time, or text that is no CSV in UTF-8; for an empty input, and one that cannot be read.
    """
    name = source_name(stream)
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    reader = csv.reader(text, strict=True)
    line = 0
    try:
        while rows := list(islice(reader, chunk)):
            if reader.line_num - line != len(rows):
                raise Refused(f"{name}: expected one value a line, without line breaks inside")
            yield _parse(rows, domain, times=times, near=near, name=name, line=line + 1)
            line = reader.line_num
    except csv.Error as error:
        raise Refused(f"{name}: line {reader.line_num}: expected CSV: {error}") from None
    except UnicodeDecodeError:
        raise Refused(f"{name}: line {line + 1} or later: expected UTF-8") from None
    except OSError as error:
        raise unreadable(name, error) from error
    finally:
        text.detach()
    if line == 0:
        raise Refused(f"{name}: expected at least one value line, got none")


def source_name(stream: BinaryIO) -> str:
    """Return what to call an input in messages."""
    name = getattr(stream, "name", None)
    return name if isinstance(name, str) and name not in {"-", "<stdin>"} else "stdin"


def unreadable(name: str, error: OSError) -> Refused:
    """Return the refusal of an input that fails while it is read."""
    return Refused(f"{name}: cannot read it: {error.strerror or error}")


def _parse(
    rows: Sequence[Sequence[str]],
    domain: Domain,
    *,
    times: bool,
    near: NearNow | None,
    name: str,
    line: int,
) -> Values:
    times_ms = None
    if times:
        times_ms = _parse_times([row[0] if row else "" for row in rows], name=name, line=line)
        if near is not None:
            near.check(times_ms, name=name, line=line)
        rows = [row[1:] for row in rows]
    try:
        indices = domain.place_columns(rows, entropy=SystemEntropy())
    except ValueOutsideDomainError as error:
        after = " after the time" if times else ""
        message = f"{name}: line {line + error.position}: expected {error.expected}{after}"
        raise Refused(message) from None
    return Values(indices, times_ms)


def _parse_times(texts: Sequence[str], *, name: str, line: int) -> Integers:
    times_ms = np.empty(len(texts), dtype=np.int64)
    for position, text in enumerate(texts):
        try:
            times_ms[position] = parse_time(text)
        except ValueError as error:
            message = f"{name}: line {line + position}: expected {error} in the first column"
            raise Refused(message) from None
    return times_ms
