"""Labels as people read them: bins with the ends that they have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self

from pydantic import JsonValue

from ldpstream.mechanisms.base.checks import rounded_text
from ldpstream.mechanisms.domains.base import Domain

if TYPE_CHECKING:
    from ldpstream.agents.document.answers import Collection, DomainShape

Ends = Sequence[float]
"""The upper end of each interval that is cut into bins; of other values none."""


@dataclass(frozen=True)
class ShownLabels:
    """Which labels of a collection are bins, by attribute; of no attribute under None.

    `names` are what people read in place of labels, by attribute and by their text.
    """

    ends: Mapping[str | None, Ends] = field(default_factory=dict)
    names: Mapping[str | None, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def of_domain(
        cls, domain: Domain, names: Mapping[str | None, Mapping[str, str]] | None = None
    ) -> Self:
        """Return those of a domain here."""
        of: dict[str | None, Domain] = {None: domain}
        of.update(domain.members.items())
        return cls(
            {name: _ends(attribute_domain.estimated) for name, attribute_domain in of.items()},
            names or {},
        )

    @classmethod
    def of_collection(cls, collection: "Collection") -> Self:
        """Return those of a collection that a worker serves."""
        of: dict[str | None, DomainShape] = {None: collection.domain}
        of |= {attribute.name: attribute.domain for attribute in collection.attributes}
        ends = {
            name: [] if shape.rounded else [high for _, high in shape.intervals or []]
            for name, shape in of.items()
        }
        names: dict[str | None, Mapping[str, str]] = {None: collection.value_labels}
        names |= {attribute.name: attribute.value_labels for attribute in collection.attributes}
        return cls(ends, names)

    def text(self, label: JsonValue, attribute: str | None = None) -> str:
        """Return a label of an attribute, or of a pair `first:second`, as text."""
        if attribute is not None and ":" in attribute and isinstance(label, list | tuple):
            sides = zip(label, attribute.split(":"), strict=True)
            return f"[{', '.join(self.text(*side) for side in sides)}]"
        text = label_text(label, self.ends.get(attribute, ()))
        return self.names.get(attribute, {}).get(text, text)


PLAIN: Final = ShownLabels()
"""Where nothing is known of the domain: bins are lists."""


def label_text(label: JsonValue, ends: Ends = ()) -> str:
    """Return a label as text: codes and coordinates as JSON has them, edges in 15 digits.

    A bin ends before its upper end, the last one with it.

    >>> label_text([0.6000000000000001, -0.0])
    '[0.6, 0]'
    >>> label_text([10, 20], [100]), label_text([[0, 1], [90, 100]], [5, 100])
    ('[10, 20)', '[0, 1) × [90, 100]')
    """
    if label is None:
        return "undefined"
    if isinstance(label, float):
        return rounded_text(label + 0.0)
    if not isinstance(label, list | tuple):
        return str(label)
    if ends:
        sides = [label] if len(ends) == 1 else label
        return " × ".join(_bin_text(side, end) for side, end in zip(sides, ends, strict=True))
    return f"[{', '.join(label_text(element) for element in label)}]"


def _bin_text(side: JsonValue, end: float) -> str:
    closed = isinstance(side, list | tuple) and side[-1] == end
    return label_text(side)[:-1] + ("]" if closed else ")")


def _ends(domain: Domain) -> Ends:
    return [] if domain.rounded else [axis.high for axis in domain.axes]
