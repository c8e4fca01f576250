"""The spec of a collection: what devices and servers must agree on, and its fingerprint."""

import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final, Self

from ldpstream.mechanisms.base.canonical import Json, canonical_json
from ldpstream.mechanisms.base.checks import describe
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.times import format_duration, parse_duration
from ldpstream.mechanisms.channels.certificate import Certificate
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.domains.parse import parse_domain
from ldpstream.mechanisms.domains.words import Words
from ldpstream.mechanisms.families.lip.lip import Lip
from ldpstream.mechanisms.families.sampled.sampled import Sampled
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.interface.settings import MECHANISM_KEYS, Settings
from ldpstream.mechanisms.interface.symbols import MOST_REPORTS
from ldpstream.mechanisms.policies.implication import implies
from ldpstream.mechanisms.policies.policy import Policy
from ldpstream.mechanisms.policies.prior import NOTHING_KNOWN, KnownPrior
from ldpstream.mechanisms.registry.attributes import build_attributes, has_attributes
from ldpstream.mechanisms.registry.registry import build
from ldpstream.mechanisms.wire.frame import FINGERPRINT_BYTES, VERSION, Framing
from ldpstream.mechanisms.wire.hold import Hold, read_hold
from ldpstream.mechanisms.wire.one_report import DISCLOSED, read_one_report

_LEGAL_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,200}")
_LONGEST_PRECISION_MS: Final = 36_500 * 86_400_000
_DEFAULT_PRECISION = "1s"
_TOKEN_VERSION = 2
_HOLD_VERSION = 3


@dataclass(frozen=True)
class CollectionSpec(Framing):
    """A collection as its devices see it: a domain, a mechanism, a topic, a time precision.

    `Framing` has most of its fields, and makes messages of labels and reports. With `one_report`
    each report carries a token, so that one report counts for each device and window. With `hold` a
    device's ledger draws once for each epoch.
    """

    hold: Hold | None = None
    prior: KnownPrior = NOTHING_KNOWN
    """Known shares of the values: part of estimates and plans, not of what devices agree on."""

    @classmethod
    def from_mapping(cls, name: str, mapping: Mapping[str, object], *, base: Path) -> Self:
        """Return the spec of a `[collection.NAME]` table; files are relative to `base`.

        Reads only `mechanism, domain, topic, precision, hold, one_report` (with it `partitions` and
        `window`), `MECHANISM_KEYS`, and with `workload = "published"` the queries of `publish`.

        Raises:
            SpecError: naming the key and what was expected.
        """
        path = f"collection.{name}"
        if not _LEGAL_NAME.fullmatch(name):
            raise SpecError(path, "a name of letters, digits, '.', '_' and '-'")
        domain, mechanism, prior = _read_mechanism(mapping, path=path, base=base)
        return cls(
            prior=prior,
            name=name,
            topic=_read_topic(mapping.get("topic", f"{name}.reports"), f"{path}.topic"),
            domain=domain,
            mechanism=mechanism,
            precision_ms=_read_precision(
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
        if not isinstance(self.mechanism, Sampled):
            return {}
        pairs = zip(self.domain.members.items(), self.mechanism.parts, strict=True)
        return {
            name: replace(self, domain=domain, mechanism=mechanism)
            for (name, domain), mechanism in pairs
        }

    @property
    def words(self) -> Words | None:
        """The domain of a collection of words, which are found in rounds; None for others."""
        return self.domain if isinstance(self.domain, Words) else None

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

    @property
    def charged(self) -> Policy:
        """The policy of one charge of a ledger: that of a report, or of an epoch's draw."""
        return (self.mechanism if self.hold is None else self.hold.permanent).policy

    def certify(self) -> Certificate:
        """Prove what a report leaks and, with `hold`, the permanent draw that it follows from."""
        certified = self.mechanism.certify()
        if self.hold is None:
            return certified
        # Without a chain, the permanent report is the one that is sent.
        drawn = certified if self.hold.chain is None else self.hold.permanent.certify()
        return certified.with_draw(drawn)

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
) -> tuple[Domain, Mechanism, KnownPrior]:
    """Return the domain of the labels that devices give, the mechanism, and the known prior."""
    if has_attributes(mapping.get("domain")):
        return *build_attributes(mapping, path=path, base=base), NOTHING_KNOWN
    domain, blocks = parse_domain(mapping.get("domain"), path=f"{path}.domain", base=base)
    domain.check_use(mapping, path, in_blocks=blocks is not None)
    keys = {key: mapping[key] for key in MECHANISM_KEYS if key in mapping}
    settings = Settings(path=path, domain=domain, blocks=blocks, keys=keys, base=base)
    # The prior of lip is one of its own settings, and its documents are about that.
    is_lip = mapping.get("mechanism") == Lip.id
    settings, prior = (settings, NOTHING_KNOWN) if is_lip else settings.split_prior()
    settings = settings.merged(mapping.get("publish"))
    mechanism = build(mapping.get("mechanism"), settings)
    if prior.shares is not None:
        prior = _check_prior(mechanism, prior, settings)
    elif not is_lip and mechanism.policy.known_shares and mechanism.table is not None:
        prior = KnownPrior(mechanism.policy.known_shares)
    return mechanism.report_domain(settings.domain), mechanism, prior


def _check_prior(mechanism: Mechanism, prior: KnownPrior, settings: Settings) -> KnownPrior:
    """Return the prior as far as it is of use, if the mechanism keeps its policy.

    Estimates with it need reports that are counted.
    """
    where = f"{settings.path}.mechanism"
    if prior.policy is not None and (pair := implies(mechanism.policy, prior.policy)) is not None:
        value, other = (describe(settings.domain.label(each)) for each in pair)
        raise SpecError(
            where,
            f"one with at most epsilon = {prior.policy.epsilon:g} between any two values, such as "
            f"randomized-response, or a channel for this very policy: {mechanism.id} may lose more "
            f"between {value} and {other}",
        )
    if mechanism.table is not None:
        return prior
    if prior.policy is None:
        raise SpecError(
            where,
            f"one that counts at most {MOST_REPORTS:,} different reports with a prior, such as "
            f"randomized-response, got {mechanism.id}",
        )
    return KnownPrior(None, prior.policy)


def _read_topic(raw: object, path: str) -> str:
    """Return the name of a topic."""
    if not isinstance(raw, str) or not _LEGAL_NAME.fullmatch(raw) or raw in (".", ".."):
        raise SpecError(
            path, f"a topic of at most 200 letters, digits, '.', '_' and '-', got {describe(raw)}"
        )
    return raw


def _read_precision(raw: object, path: str) -> int:
    """Return the precision of times in milliseconds."""
    if isinstance(raw, str):
        try:
            precision_ms = parse_duration(raw)
        except ValueError:
            precision_ms = 0
        if 0 < precision_ms <= _LONGEST_PRECISION_MS:
            return precision_ms
    longest = format_duration(_LONGEST_PRECISION_MS)
    raise SpecError(
        path, f'a duration above 0 such as "1s" or "5m", at most {longest}, got {describe(raw)}'
    )


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
