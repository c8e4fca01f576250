"""Mechanisms of several attributes: one is drawn, and reported by its own mechanism.

A report is the attribute's number, one byte, and the report of its mechanism, padded with zeros to
one length. The statistic holds those of all attributes, one after the other. One report keeps the
largest budget of any attribute (`policies.attributes`); a report for each attribute, or for all
their combinations, would have to divide it.

No values are made up for attributes that were not drawn. Fake values (RS+FD: Arcolezi et al. 2021)
are said to amplify a budget of eps to `log(d (e^eps - 1) + 1)`, which holds only for records that
differ in a single attribute.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.lazy import locked_cached_property
from ldpstream.mechanisms.channels.blanket import Blanket
from ldpstream.mechanisms.channels.certificate import BudgetLoss, Certificate
from ldpstream.mechanisms.channels.channel import Channel
from ldpstream.mechanisms.exact.entropy import WORD, Entropy
from ldpstream.mechanisms.interface.decoder import Decoded, Decoder, Statistic
from ldpstream.mechanisms.interface.mechanism import Json, Mechanism, Reports
from ldpstream.mechanisms.interface.settings import Settings
from ldpstream.mechanisms.policies.attributes import AttributesPolicy

MOST_ATTRIBUTES: Final = 256


class SampledDecoder(Decoder):
    """Combines the decoders of the attributes; estimates use one attribute's decoder by itself."""

    def __init__(self, parts: Sequence[Mechanism], slices: Sequence[slice]) -> None:
        self._parts, self._slices = [mechanism.decoder for mechanism in parts], slices
        self._sizes = [mechanism.size for mechanism in parts]
        self.scratch = max(decoder.scratch for decoder in self._parts)

    def _cut(self, of_values: Floats) -> list[Floats]:
        """Return the entries of each attribute's values."""
        return np.split(of_values, np.cumsum(self._sizes)[:-1])

    def totals(self, statistic: Statistic) -> Floats:
        """Return the sums of the values' decoders, which are 0 at other attributes' reports."""
        pairs = zip(self._parts, self._slices, strict=True)
        return np.concatenate([decoder.totals(statistic[span]) for decoder, span in pairs])

    def decode_values(self, statistic: Statistic) -> Decoded:
        pairs = zip(self._parts, self._slices, strict=True)
        parts = tuple(decoder.decode_values(statistic[span]) for decoder, span in pairs)
        totals = np.concatenate([part.totals for part in parts])
        reports = np.concatenate([part.reports for part in parts])
        return Decoded(statistic, totals, reports, parts=parts)

    def moments(self, decoded: Decoded, at: slice | Integers) -> Floats:
        pairs = zip(self._parts, decoded.parts, strict=True)
        return np.concatenate([decoder.moments(part, slice(None)) for decoder, part in pairs])[at]

    def extremes(self) -> tuple[Floats, Floats]:
        low, high = zip(*(decoder.extremes() for decoder in self._parts), strict=True)
        return np.minimum(np.concatenate(low), 0.0), np.maximum(np.concatenate(high), 0.0)

    def noise(self, weights: Floats) -> Floats:
        pairs = zip(self._parts, self._cut(weights), strict=True)
        return np.concatenate([decoder.noise(own) for decoder, own in pairs])

    def noise_extremes(self) -> tuple[Floats, Floats]:
        low, high = zip(*(decoder.noise_extremes() for decoder in self._parts), strict=True)
        return np.concatenate(low), np.concatenate(high)

    def groups(self) -> Integers:
        """Return the group of each value: its attribute, and what that one discloses."""
        numbers, first = [], 0
        for decoder, size in zip(self._parts, self._sizes, strict=True):
            groups = decoder.groups()
            group = np.zeros(size, dtype=np.int64) if groups is None else groups
            numbers.append(group + first)
            first += int(group.max()) + 1
        return np.concatenate(numbers)

    def group_reports(self, statistic: Statistic) -> Integers:
        pairs = zip(self._parts, self._slices, strict=True)
        return np.concatenate([decoder.group_reports(statistic[span]) for decoder, span in pairs])


@dataclass(frozen=True)
class Sampled(Mechanism):
    """Attributes `names`, drawn with `probabilities / 2^64` and reported by the mechanisms `parts`.

    Raises:
        SpecError: if there are fewer than 2 attributes or more than 256, or the probabilities are
            not above 0 with sum 1.
    """

    id: ClassVar[str] = "sampled"
    names: tuple[str, ...]
    parts: tuple[Mechanism, ...]
    probabilities: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 2 <= len(self.parts) <= MOST_ATTRIBUTES:
            expected = f"2 to {MOST_ATTRIBUTES} attributes, got {len(self.parts)}"
            raise SpecError("domain.attributes", expected)
        if sum(self.probabilities) != WORD or min(self.probabilities) < 1:
            raise SpecError("domain.attributes", "probabilities above 0 with sum 1")

    @classmethod
    def configure(cls, settings: Settings) -> Self:
        """Refuse a domain without attributes; with attributes `registry.attributes` is used."""
        what = "attributes = { NAME = { ... }, ... } with sampled"
        raise SpecError(f"{settings.path}.domain", what)

    @cached_property
    def size(self) -> int:
        return sum(mechanism.size for mechanism in self.parts)

    @cached_property
    def report_bytes(self) -> int:
        """Length of a report: the attribute's number and the longest report of any attribute."""
        return 1 + max(mechanism.report_bytes for mechanism in self.parts)

    @property
    def report_bits(self) -> int:
        return (len(self.parts) - 1).bit_length() + max(
            mechanism.report_bits for mechanism in self.parts
        )

    @cached_property
    def statistic_size(self) -> int:
        return sum(mechanism.statistic_size for mechanism in self.parts)

    @property
    def policy(self) -> AttributesPolicy:
        """The policies of the attributes; two records have the largest of their entries."""
        return AttributesPolicy(self.names, tuple(mechanism.policy for mechanism in self.parts))

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The index of the first value of each attribute."""
        return tuple(accumulate((mechanism.size for mechanism in self.parts[:-1]), initial=0))

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """The slice of the statistic of each attribute."""
        ends = list(accumulate((mechanism.statistic_size for mechanism in self.parts), initial=0))
        return tuple(slice(first, last) for first, last in pairwise(ends))

    def attributes_of(self, reports: Reports) -> NDArray[np.int64]:
        return reports[:, 0].astype(np.int64)

    def parameters(self) -> Mapping[str, Json]:
        attributes: list[Json] = [
            {
                "name": name,
                "probability": hex(probability),
                "mechanism": mechanism.id,
                "parameters": dict(mechanism.parameters()),
            }
            for name, probability, mechanism in self._attributes()
        ]
        return {"attributes": attributes}

    def tables(self) -> Mapping[str, Json]:
        tables: dict[str, Json] = {
            name: dict(mechanism.tables())
            for name, _, mechanism in self._attributes()
            if mechanism.tables()
        }
        return {"attributes": tables} if tables else {}

    def _attributes(self) -> list[tuple[str, int, Mechanism]]:
        return list(zip(self.names, self.probabilities, self.parts, strict=True))

    def channel(self) -> Channel:
        """Return the realised channels of all attributes; outputs as in `possible_reports`."""
        rows: list[Mapping[int, Fraction]] = []
        outputs = 0
        for mechanism in self.parts:
            channel = mechanism.channel()
            rows += [{outputs + y: p for y, p in row.items()} for row in channel.rows]
            outputs += channel.outputs
        return Channel(tuple(rows), outputs)

    def possible_reports(self) -> Reports:
        return np.concatenate(
            [
                self._written(number, mechanism.encode(mechanism.possible_reports()))
                for number, mechanism in enumerate(self.parts)
            ]
        )

    def certify(self) -> Certificate:
        """Prove the realised loss of each attribute, whose ratios are those of all records.

        The proof is by enumeration if it is for every attribute.
        """
        proofs = {name: mechanism.certify() for name, _, mechanism in self._attributes()}
        worst: dict[Fraction, BudgetLoss] = {}
        for loss in (loss for proof in proofs.values() for loss in proof.losses):
            known = worst.get(loss.budget, loss)
            worst[loss.budget] = max(known, loss, key=lambda each: each.ratio)
        broken = [f"{name}: {p.violation}" for name, p in proofs.items() if p.violation is not None]
        kinds = {proof.proof for proof in proofs.values()}
        policy = self.policy
        return Certificate(
            mechanism=self.id,
            policy=policy.describe(),
            losses=tuple(worst[budget] for budget in sorted(worst)),
            disclosed=tuple(self.disclosed()),
            unprotected_pairs=policy.unprotected_pairs,
            unprotected=policy.unprotected,
            passed=all(proof.passed for proof in proofs.values()),
            proof="enumeration" if kinds == {"enumeration"} else "structure",
            violation=broken[0] if broken else None,
            attributes=proofs,
        )

    def blankets(self) -> Mapping[Fraction, Collection[Blanket]]:
        """Return nothing, since the number of reports about an attribute is random."""
        return {}

    def randomise(self, values: NDArray[np.int64], entropy: Entropy) -> Reports:
        """Randomise values of drawn attributes into reports, uint8 `(n, report_bytes)`.

        Goes attribute by attribute, with the draws of each one's mechanism.
        """
        reports = np.zeros((len(values), self.report_bytes), dtype=np.uint8)
        drawn = np.searchsorted(self.starts, values, side="right") - 1
        for number in np.unique(drawn).tolist():
            here, mechanism = np.flatnonzero(drawn == number), self.parts[number]
            columns = mechanism.randomise(values[here] - self.starts[number], entropy)
            reports[here] = self._written(number, mechanism.encode(columns))
        return reports

    def _written(self, number: int, payload: NDArray[np.uint8]) -> Reports:
        rows = np.zeros((len(payload), self.report_bytes), dtype=np.uint8)
        rows[:, 0] = number
        rows[:, 1 : 1 + payload.shape[1]] = payload
        return rows

    def encode(self, reports: Reports) -> NDArray[np.uint8]:
        encoded: NDArray[np.uint8] = reports.reshape(len(reports), self.report_bytes)
        return encoded

    def decode(self, payload: NDArray[np.uint8]) -> tuple[Reports, NDArray[np.bool_]]:
        """Return the rows unchanged, and which of them are reports, bool `(n,)`.

        In a report the attribute exists, its mechanism has the report, and the padding is zeros.
        """
        valid = np.zeros(len(payload), dtype=np.bool_)
        for number, here, columns in self._by_attribute(payload):
            mechanism = self.parts[number]
            _, in_range = mechanism.decode(columns)
            valid[here] = in_range & ~payload[here, 1 + mechanism.report_bytes :].any(axis=1)
        return payload, valid

    def _by_attribute(
        self, reports: Reports
    ) -> list[tuple[int, NDArray[np.int64], NDArray[np.uint8]]]:
        """Return each attribute with reports, the places of its reports, and their payload."""
        numbers = reports[:, 0] if len(reports) else np.zeros(0, dtype=np.uint8)
        groups = []
        for number in np.unique(numbers).tolist():
            if number < len(self.parts):
                here = np.flatnonzero(numbers == number)
                columns = reports[here, 1 : 1 + self.parts[number].report_bytes]
                groups.append((number, here, np.ascontiguousarray(columns)))
        return groups

    def accumulate(self, statistic: Statistic, reports: Reports) -> None:
        for number, _, columns in self._by_attribute(reports):
            mechanism = self.parts[number]
            mechanism.accumulate(statistic[self.slices[number]], mechanism.decode(columns)[0])

    def sparse_counts(self, reports: Reports) -> Sequence[tuple[int, int]] | None:
        """Return the counts of each attribute's mechanism, at the places of its statistic."""
        entries: list[tuple[int, int]] = []
        for number, _, columns in self._by_attribute(reports):
            mechanism = self.parts[number]
            counts = mechanism.sparse_counts(mechanism.decode(columns)[0])
            if counts is None:
                return None
            entries += [(self.slices[number].start + place, count) for place, count in counts]
        return entries

    def accumulate_times(
        self, statistic: Statistic, reports: Reports, times: NDArray[np.int64]
    ) -> None:
        for number, here, columns in self._by_attribute(reports):
            mechanism = self.parts[number]
            mechanism.accumulate_times(
                statistic[self.slices[number]], mechanism.decode(columns)[0], times[here]
            )

    def count(self, statistic: Statistic) -> int:
        return sum(self.counts(statistic))

    def counts(self, statistic: Statistic) -> list[int]:
        pairs = zip(self.parts, self.slices, strict=True)
        return [mechanism.count(statistic[span]) for mechanism, span in pairs]

    @locked_cached_property
    def decoder(self) -> SampledDecoder:
        return SampledDecoder(self.parts, self.slices)

    def disclosed(self) -> list[str]:
        text = f"which of {len(self.parts)} attributes it is about, drawn before values are seen"
        texts = [
            f"{name}: {item}"
            for name, _, mechanism in self._attributes()
            for item in mechanism.disclosed()
        ]
        return [text, *texts]
