"""Assign partitions to the members of a group, evenly and with as few moves as possible.

Every topic is spread evenly, and so are all topics together: three workers of one collection with
four partitions own 2, 1 and 1; with six collections of one partition they own two each. Only what
evenness requires moves. The leader of the group calls this.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

Partition = tuple[str, int]


def assign(
    owned: Mapping[str, Iterable[Partition]],
    subscribed: Mapping[str, Collection[str]],
    partitions: Mapping[str, int],
) -> dict[str, set[Partition]]:
    """Return the partitions of every member.

    `owned` is what members own so far, `subscribed` the topics of each member, `partitions` the
    number of partitions of each topic. Each partition of a topic with subscribers gets one of them
    as its owner. Two subscribers' numbers of partitions of a topic differ by at most one; so do
    their totals, if they have equal numbers of all their topics.
    """
    sharing = _Sharing(subscribed)
    known = {(topic, p) for topic, number in partitions.items() for p in range(number)}
    for member in sorted(subscribed):
        for partition in sorted(set(owned.get(member, ())) & known):
            # After a pause, two members may both claim a partition.
            if partition[0] in subscribed[member]:
                sharing.give(partition, member)
                known.remove(partition)
    for partition in sorted(known):
        least = sharing.least(partition[0])
        if least is not None:
            sharing.give(partition, least)
    while sharing.even_out():
        pass
    return sharing.found


class _Sharing:
    """The partitions given to members so far."""

    def __init__(self, subscribed: Mapping[str, Collection[str]]) -> None:
        self.found: dict[str, set[Partition]] = {member: set() for member in sorted(subscribed)}
        self._of_topic: Counter[tuple[str, str]] = Counter()
        self._members: dict[str, list[str]] = {}
        for member in self.found:
            for topic in subscribed[member]:
                self._members.setdefault(topic, []).append(member)

    def give(self, partition: Partition, member: str) -> None:
        self.found[member].add(partition)
        self._of_topic[member, partition[0]] += 1

    def least(self, topic: str) -> str | None:
        """Return the subscriber with the fewest partitions of a topic, then the fewest of all."""
        return min(self._members.get(topic, ()), key=lambda m: self._load(m, topic), default=None)

    def even_out(self) -> bool:
        """Move partitions from members that have too many; return whether any had.

        It ends, because each move lowers the sum of squares of the members' numbers per topic, or
        keeps that and lowers the sum of squares of their totals.
        """
        moved = False
        for topic in sorted(self._members):
            for member in self._members[topic]:
                for partition in sorted(p for p in self.found[member] if p[0] == topic):
                    least = self.least(topic)
                    if least is not None and self._has_too_many(member, least, topic):
                        self.found[member].remove(partition)
                        self._of_topic[member, topic] -= 1
                        self.give(partition, least)
                        moved = True
        return moved

    def _load(self, member: str, topic: str) -> tuple[int, int]:
        return self._of_topic[member, topic], len(self.found[member])

    def _has_too_many(self, member: str, other: str, topic: str) -> bool:
        (own, total), (least, others) = self._load(member, topic), self._load(other, topic)
        return own - least > 1 or (own - least == 1 and total - others > 1)
