"""The spec of a collection: what devices and servers must agree on, and its fingerprint."""

import hashlib
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.canonical import Json, canonical_json
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.times import format_duration, read_times
from ldpstream.mechanisms.domains.attributes import Attributes
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.domains.parse import parse_domain
from ldpstream.mechanisms.domains.words import Words
from ldpstream.mechanisms.exact.entropy import Entropy, SystemEntropy
from ldpstream.mechanisms.families.sampled.sampled import Sampled
from ldpstream.mechanisms.interface.mechanism import Mechanism, Reports
from ldpstream.mechanisms.interface.settings import MECHANISM_KEYS, Settings
from ldpstream.mechanisms.policies.policy import Policy
from ldpstream.mechanisms.registry.attributes import build_attributes, has_attributes
from ldpstream.mechanisms.registry.registry import build
from ldpstream.mechanisms.wire.frame import FINGERPRINT_BYTES, VERSION, encode_frame
from ldpstream.mechanisms.wire.hold import Hold, read_hold
from ldpstream.mechanisms.wire.one_report import (
    DISCLOSED,
    TOKEN_BYTES,
    OneReport,
    Tokens,
    read_one_report,
    token_numbers,
)
from ldpstream.mechanisms.wire.spec_keys import LEGAL_NAME, read_precision, read_topic

_DEFAULT_PRECISION = "1s"
_TOKEN_VERSION = 2
_HOLD_VERSION = 3


@dataclass(frozen=True)
class CollectionSpec:
    """A collection as its devices see it: a domain, a mechanism, a topic, a time precision.

    With `one_report` each report carries a token, so that one report counts for each device and
    window. With `hold` a device's ledger draws once for each epoch.
    """

    name: str
    topic: str
    domain: Domain
    mechanism: Mechanism
    precision_ms: int
    one_report: OneReport | None = None
    hold: Hold | None = None

    @classmethod
    def from_mapping(cls, name: str, mapping: Mapping[str, object], *, base: Path) -> Self:
        """Return the spec of a `[collection.NAME]` table; files are relative to `base`.

        Reads only `mechanism, domain, topic, precision, hold, one_report` (with it `partitions` and
        `window`) and `MECHANISM_KEYS`.

        Raises:
            SpecError: naming the key and what was expected.
        """
        path = f"collection.{name}"
        if not LEGAL_NAME.fullmatch(name):
            raise SpecError(path, "a name of letters, digits, '.', '_' and '-'")
        domain, mechanism = _read_mechanism(mapping, path=path, base=base)
        return cls(
            name=name,
            topic=read_topic(mapping.get("topic", f"{name}.reports"), f"{path}.topic"),
            domain=domain,
            mechanism=mechanism,
            precision_ms=read_precision(
                mapping.get("precision", _DEFAULT_PRECISION), f"{path}.precision"
            ),
            one_report=read_one_report(mapping, path),
            hold=read_hold(mapping.get("hold"), path, mechanism),
        )

    @cached_property
    def attributes(self) -> Mapping[str, "CollectionSpec"]:
        """The specs of the attributes of records by name, each with its own domain and mechanism.

        They share the collection's name and topic, and are not collections by themselves. Empty if
        values are not records.
        """
        if not isinstance(self.domain, Attributes) or not isinstance(self.mechanism, Sampled):
            return {}
        parts = zip(self.domain.names, self.domain.domains, self.mechanism.parts, strict=True)
        return {name: replace(self, domain=own, mechanism=part) for name, own, part in parts}

    @property
    def canonical(self) -> bytes:
        """The spec as canonical JSON (docs/wire.md), on which devices and servers must agree.

        The topic is not part of it, since the same reports may be carried elsewhere.
        """
        document: dict[str, Json] = {
            "version": VERSION,
            "collection": self.name,
            "domain": self.domain.canonical(),
            "mechanism": self.mechanism.id,
            "parameters": dict(self.mechanism.parameters()),
            "precision_ms": self.precision_ms,
        }
        if self.one_report is not None:
            document |= {"version": _TOKEN_VERSION, "one_report": self.one_report.canonical()}
        if self.hold is not None:
            document |= {"version": _HOLD_VERSION, "hold": self.hold.canonical()}
        return canonical_json(document)

    @cached_property
    def fingerprint(self) -> bytes:
        """First 8 bytes of the SHA-256 of the canonical JSON: the spec's identity on the wire."""
        return hashlib.sha256(self.canonical).digest()[:FINGERPRINT_BYTES]

    @cached_property
    def report_bytes(self) -> int:
        """The length of a report on the wire, in bytes: the mechanism's, and a token if any."""
        return self.mechanism.report_bytes + (0 if self.one_report is None else TOKEN_BYTES)

    @property
    def charged(self) -> Policy:
        """The policy of one charge of a ledger: that of a report, or of an epoch's draw."""
        return (self.mechanism if self.hold is None else self.hold.permanent).policy

    def split(self, payload: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], Tokens]:
        """Return reports as the mechanism encodes them, and their tokens, `(n, 0)` if none."""
        size = self.mechanism.report_bytes
        return np.ascontiguousarray(payload[:, :size]), payload[:, size:]

    def device_document(self) -> dict[str, Json]:
        """Return what a device in any language needs (docs/wire.md, "Device document").

        `canonical` is the canonical JSON as a text, so that its bytes can be hashed unchanged.
        """
        return {
            "collection": self.name,
            "fingerprint": self.fingerprint.hex(),
            "canonical": self.canonical.decode("ascii"),
            "tables": dict(self.mechanism.tables()),
        }

    def privatize(
        self, labels: Sequence[Any] | NDArray[Any], *, entropy: Entropy | None = None
    ) -> Reports:
        """Randomise n labels into reports, one a row (`mechanism.Reports`).

        Raises:
            ValueOutsideDomainError: naming the position of the first bad label, never the label.
        """
        source = entropy or SystemEntropy()
        # A placed label is a value of the mechanism, so that nothing has to be checked.
        return self.mechanism.randomise(self.domain.place(labels, entropy=source), source)

    def frame(
        self,
        labels: Sequence[Any] | NDArray[Any],
        *,
        times_ms: Sequence[int] | NDArray[np.int64] | None = None,
        entropy: Entropy | None = None,
        secret: bytes | None = None,
    ) -> bytes:
        """Randomise n >= 1 labels into one message: a frame ready to produce.

        `times_ms` are epoch milliseconds, one for each label, by default now; they are cut to the
        precision. With `one_report` there is one label, and the device's secret.

        Raises:
            ValueOutsideDomainError: naming the position of the first bad label, never the label.
            ValueError: if there are no labels, or not one integer time within the years 1 to 9999
                for each; with `one_report`, if there is no secret or more than one label; without,
                if there is a secret.
        """
        if (secret is None) != (self.one_report is None):
            raise ValueError("expected a secret with one_report, and only with it")
        if secret is not None and len(labels) != 1:
            raise ValueError("expected one label: one_report takes one from a device")
        reports = self.privatize(labels, entropy=entropy)
        if times_ms is None:
            times = np.full(len(reports), time.time_ns() // 1_000_000, dtype=np.int64)
        else:
            times = read_times(times_ms, len(reports))
        tokens = None if secret is None else self.tokens(secret, times)
        return self.frame_reports(reports, times_ms=times, tokens=tokens)

    def tokens(self, secret: bytes, times_ms: NDArray[np.int64]) -> Tokens:
        """Return a device's tokens, uint8 `(n, 8)`, for n times, int64 `(n,)`.

        Raises:
            ValueError: without `one_report`, or if the secret has fewer than 16 bytes.
        """
        if self.one_report is None:
            raise ValueError("expected a collection with one_report")
        cut_ms = times_ms - times_ms % self.precision_ms
        return self.one_report.tokens(secret, self.fingerprint, cut_ms)

    def frame_reports(
        self, reports: Reports, *, times_ms: NDArray[np.int64], tokens: Tokens | None = None
    ) -> bytes:
        """Frame n >= 1 reports with their times, int64 `(n,)`, which are cut to the precision.

        Reports with the same cut time are sorted, by token if there are tokens. Their original
        order would reveal the order of events more finely than the precision, and, if values came
        sorted, narrow them down. `tokens`, uint8 `(n, 8)`, have one partition.

        Raises:
            ValueError: if there are no reports, not one time for each, or not the tokens that
                `one_report` requires.
        """
        if np.shape(times_ms) != np.shape(reports)[:1]:
            raise ValueError("expected one time for each report")
        cut_ms = times_ms - times_ms % self.precision_ms
        if self.one_report is not None:
            tokens = self.one_report.check(tokens, len(reports))
            order = np.lexsort((token_numbers(tokens), cut_ms))
            rows = np.hstack((self.mechanism.encode(reports), tokens))
            return encode_frame(self.fingerprint, cut_ms[order], rows[order])
        if tokens is not None:
            raise ValueError("expected no tokens without one_report")
        if len(reports) > 1:
            order = self._sort(reports, cut_ms)
            reports, cut_ms = reports[order], cut_ms[order]
        return encode_frame(self.fingerprint, cut_ms, self.mechanism.encode(reports))

    def frame_encoded(
        self, payload: NDArray[np.uint8], *, time_ms: int, secret: bytes | None = None
    ) -> bytes:
        """Frame one encoded report, uint8 `(1, B)`, such as a ledger releases.

        Raises:
            ValueError: with `one_report`, if the secret is missing or has fewer than 16 bytes.
        """
        times_ms = np.array([time_ms], dtype=np.int64)
        if self.one_report is not None:
            payload = np.hstack((payload, self.tokens(secret or b"", times_ms)))
        return encode_frame(self.fingerprint, times_ms - times_ms % self.precision_ms, payload)

    def _sort(self, reports: Reports, cut_ms: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the order by time, then by report: symbols by number, rows by their bytes."""
        if reports.ndim == 1:
            return np.lexsort((reports, cut_ms))
        rows = np.ascontiguousarray(self.mechanism.encode(reports))
        by_bytes = np.argsort(rows.view(f"V{rows.shape[1]}")[:, 0], kind="stable")
        return by_bytes[np.argsort(cut_ms[by_bytes], kind="stable")]

    def disclosed(self) -> list[str]:
        """Return what is sent in the clear, by the mechanism and by taking part."""
        return [
            *self.mechanism.disclosed(),
            f"the event time, cut to {format_duration(self.precision_ms)}",
            *(DISCLOSED if self.one_report is not None else ()),
            *(() if self.hold is None else (self.hold.disclosed(),)),
            "taking part: that a device reports, how often, and when it sends",
        ]


def _read_mechanism(
    mapping: Mapping[str, object], *, path: str, base: Path
) -> tuple[Domain, Mechanism]:
    """Return the domain of the labels that devices give, and the mechanism of a collection."""
    if has_attributes(mapping.get("domain")):
        return build_attributes(mapping, path=path, base=base)
    domain, blocks = parse_domain(mapping.get("domain"), path=f"{path}.domain", base=base)
    if isinstance(domain, Words):
        domain.check_use(mapping, path, in_blocks=blocks is not None)
    keys = {key: mapping[key] for key in MECHANISM_KEYS if key in mapping}
    settings = Settings(path=path, domain=domain, blocks=blocks, keys=keys, base=base)
    mechanism = build(mapping.get("mechanism"), settings)
    return mechanism.report_domain(domain), mechanism


def load_spec(path: str | Path, name: str) -> CollectionSpec:
    """Return the spec of one collection from a configuration file.

    Raises:
        SpecError: if the file cannot be read or is not TOML, has no such collection, or a key of
            the collection is invalid.
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
