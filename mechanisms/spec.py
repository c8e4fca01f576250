"""The spec of a collection: what devices and servers must agree on, and its fingerprint."""

import hashlib
import re
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.canonical import canonical_json
from ldpstream.mechanisms.checks import describe
from ldpstream.mechanisms.domain import parse_domain
from ldpstream.mechanisms.domain_base import Domain
from ldpstream.mechanisms.entropy import Entropy, SystemEntropy
from ldpstream.mechanisms.errors import SpecError
from ldpstream.mechanisms.frame import FINGERPRINT_BYTES, VERSION, encode_frame
from ldpstream.mechanisms.mechanism import Mechanism, Reports
from ldpstream.mechanisms.registry import build
from ldpstream.mechanisms.settings import MECHANISM_KEYS, Settings
from ldpstream.mechanisms.times import (
    EARLIEST_MS,
    LATEST_MS,
    format_duration,
    parse_duration,
)

_LEGAL_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")
_DEFAULT_PRECISION = "1s"
_LONGEST_PRECISION_MS = 36_500 * 86_400_000


@dataclass(frozen=True)
class CollectionSpec:
    """A collection as its devices see it: a domain, a mechanism, a topic, a time precision."""

    name: str
    topic: str
    domain: Domain
    mechanism: Mechanism
    precision_ms: int

    @classmethod
    def from_mapping(cls, name: str, mapping: Mapping[str, object], *, base: Path) -> Self:
        """Return the spec of a `[collection.NAME]` table; files are relative to `base`.

        Reads the keys `mechanism, domain, topic, precision` and `MECHANISM_KEYS`, no others.

        Raises:
            SpecError: naming the key and what was expected.
        """
        path = f"collection.{name}"
        if not _LEGAL_NAME.fullmatch(name):
            raise SpecError(path, "a name of letters, digits, '.', '_' and '-'")
        for key in ("mechanism", "domain"):
            if key not in mapping:
                raise SpecError(f"{path}.{key}", "this key, which has no default")
        domain, blocks = parse_domain(mapping["domain"], path=f"{path}.domain", base=base)
        settings = Settings(
            path=path,
            domain=domain,
            blocks=blocks,
            keys={key: mapping[key] for key in MECHANISM_KEYS if key in mapping},
            base=base,
        )
        mechanism = build(mapping["mechanism"], settings)
        return cls(
            name=name,
            topic=_read_topic(mapping.get("topic", f"{name}.reports"), f"{path}.topic"),
            domain=mechanism.report_domain(domain),
            mechanism=mechanism,
            precision_ms=_read_precision(
                mapping.get("precision", _DEFAULT_PRECISION), f"{path}.precision"
            ),
        )

    @property
    def canonical(self) -> bytes:
        """The spec as canonical JSON (docs/wire.md): what devices and servers must agree on.

        The topic is no part of it: the same reports may be carried elsewhere.
        """
        return canonical_json(
            {
                "version": VERSION,
                "collection": self.name,
                "domain": self.domain.canonical(),
                "mechanism": self.mechanism.id,
                "parameters": dict(self.mechanism.parameters()),
                "precision_ms": self.precision_ms,
            }
        )

    @cached_property
    def fingerprint(self) -> bytes:
        """First 8 bytes of the SHA-256 of the canonical JSON: the spec's identity on the wire."""
        return hashlib.sha256(self.canonical).digest()[:FINGERPRINT_BYTES]

    def privatize(
        self, labels: Sequence[Any] | NDArray[Any], *, entropy: Entropy | None = None
    ) -> Reports:
        """Randomise n labels into reports, int64 of shape `(n,)`.

        Raises:
            ValueOutsideDomainError: naming the position of the first bad label, never the label.
        """
        source = entropy or SystemEntropy()
        return self.mechanism.privatize(self.domain.place(labels, entropy=source), entropy=source)

    def frame(
        self,
        labels: Sequence[Any] | NDArray[Any],
        *,
        times_ms: Sequence[int] | NDArray[np.int64] | None = None,
        entropy: Entropy | None = None,
    ) -> bytes:
        """Randomise n >= 1 labels into one message: a frame ready to produce.

        `times_ms` are epoch milliseconds, one for each label, by default now; they are cut to the
        collection's precision before they leave.

        Raises:
            ValueOutsideDomainError: naming the position of the first bad label, never the label.
            ValueError: for no labels, or not one whole number of the years 1 to 9999 for each.
        """
        reports = self.privatize(labels, entropy=entropy)
        if times_ms is None:
            times = np.full(len(reports), time.time_ns() // 1_000_000, dtype=np.int64)
        else:
            times = _read_times(times_ms, len(reports))
        return self.frame_reports(reports, times_ms=times)

    def frame_reports(self, reports: Reports, *, times_ms: NDArray[np.int64]) -> bytes:
        """Frame n >= 1 reports with their times, int64 `(n,)`, cut to the precision here.

        Reports of one cut time go in ascending order. As they came, their places would order the
        events more finely than the precision and, where values came sorted, narrow them down.

        Raises:
            ValueError: for no reports, or not one time for each.
        """
        if np.shape(times_ms) != np.shape(reports)[:1]:
            raise ValueError("expected one time for each report")
        cut_ms = times_ms - times_ms % self.precision_ms
        if len(reports) > 1:
            order = self._sort(reports, cut_ms)
            reports, cut_ms = reports[order], cut_ms[order]
        return encode_frame(self.fingerprint, cut_ms, self.mechanism.encode(reports))

    def _sort(self, reports: Reports, cut_ms: NDArray[np.int64]) -> NDArray[np.int64]:
        """Order by time, then by the report: symbols as numbers, rows as their bytes."""
        if reports.ndim == 1:
            return np.lexsort((reports, cut_ms))
        rows = np.ascontiguousarray(self.mechanism.encode(reports))
        by_bytes = np.argsort(rows.view(f"V{rows.shape[1]}")[:, 0], kind="stable")
        return by_bytes[np.argsort(cut_ms[by_bytes], kind="stable")]

    def disclosed(self) -> list[str]:
        """Return what leaves a device in the clear: by the mechanism, and by taking part."""
        return [
            *self.mechanism.disclosed(),
            f"the event time, cut to {format_duration(self.precision_ms)}",
            "taking part: that a device reports, how often, and when it sends",
        ]


def load_spec(path: str | Path, name: str) -> CollectionSpec:
    """Return the spec of one collection out of a configuration file.

    Raises:
        SpecError: where the file cannot be read or is no TOML, has no such collection, or a key of
            the collection is impossible.
    """
    file = Path(path)
    try:
        with file.open("rb") as stream:
            document = tomllib.load(stream)
    except OSError as error:
        raise SpecError(str(path), f"a readable file: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(str(path), f"TOML: {error}") from error
    collections = document.get("collection")
    if not isinstance(collections, dict) or not isinstance(collections.get(name), dict):
        raise SpecError(f"collection.{name}", f"this table in {path}")
    return CollectionSpec.from_mapping(name, collections[name], base=file.parent)


def _read_topic(given: object, path: str) -> str:
    if not isinstance(given, str) or not _LEGAL_NAME.fullmatch(given) or given in (".", ".."):
        raise SpecError(
            path, f"a topic of at most 200 letters, digits, '.', '_' and '-', got {describe(given)}"
        )
    return given


def _read_precision(given: object, path: str) -> int:
    if isinstance(given, str):
        try:
            precision_ms = parse_duration(given)
        except ValueError:
            precision_ms = 0
        if 0 < precision_ms <= _LONGEST_PRECISION_MS:
            return precision_ms
    longest = format_duration(_LONGEST_PRECISION_MS)
    raise SpecError(
        path, f'a duration above 0 such as "1s" or "5m", at most {longest}, got {describe(given)}'
    )


def _read_times(times_ms: Sequence[int] | NDArray[np.int64], n: int) -> NDArray[np.int64]:
    times = np.asarray(times_ms)
    if (
        times.shape != (n,)
        or times.dtype.kind not in "iu"
        or not ((times >= EARLIEST_MS) & (times <= LATEST_MS)).all()
    ):
        raise ValueError("expected one time for each label, in whole milliseconds since the epoch")
    return times.astype(np.int64)
