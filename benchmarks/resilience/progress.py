"""When the reports of a collection were counted, and when counting stood still."""

from collections.abc import Iterable, Mapping, Sequence

from tests.lab import Lab

from ldpstream.agents.state.encoding import decode_head, decode_key, state_prefix
from ldpstream.agents.state.records import HEAD

Heads = Mapping[int, Sequence[tuple[int, float]]]
"""By partition, the offset that each winning head counts up to, and when it was stored, epoch s."""
Stretch = tuple[float, float]


async def winning_heads(lab: Lab) -> Heads:
    """Return every head that counts more than those before it; of equal numbers the first wins."""
    prefix = state_prefix(lab.context)
    found: dict[int, list[tuple[int, float]]] = {}
    seen: set[tuple[int, int]] = set()
    for record in await lab.records(lab.collection.topics.changelog):
        key = decode_key(prefix, record.key or b"")
        if key is None or key.name != HEAD or record.value is None:
            continue
        if (record.partition, key.seq) not in seen:
            seen.add((record.partition, key.seq))
            following = decode_head(key, record.value).next
            heads = found.setdefault(record.partition, [])
            if following > (heads[-1][0] if heads else 0):
                heads.append((following, record.timestamp / 1000))
    return found


async def arrivals(lab: Lab) -> Mapping[int, Sequence[float]]:
    """Return, by partition and offset, when messages were sent, epoch s."""
    found: dict[int, list[float]] = {}
    for record in await lab.records(lab.collection.topics.source):
        sent = found.setdefault(record.partition, [])
        assert record.offset == len(sent)
        sent.append(record.timestamp / 1000)
    return found


def waits(heads: Heads, arrived: Mapping[int, Sequence[float]]) -> list[Stretch]:
    """Return the intervals in which a partition had a message waiting and counted none."""
    found = []
    for partition, sent in arrived.items():
        first, since = 0, 0.0
        for following, at in heads[partition]:
            found.append((max(since, sent[first]), at))
            first, since = following, at
            if first == len(sent):
                break
    return found


def total_seconds(stretches: Iterable[Stretch]) -> float:
    """Return the length of the union of the intervals."""
    total, reached = 0.0, 0.0
    for begun, ended in sorted(stretches):
        total += max(0.0, ended - max(begun, reached))
        reached = max(reached, ended)
    return total
