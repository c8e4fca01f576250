"""Rules 2, 3 and 9 as plain definitions: what a set of records means, evaluated from scratch.

`Replica` evaluates incrementally and must always agree with this.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from ldpstream.agents.state.encoding import decode_head, decode_key
from ldpstream.agents.state.records import HEAD, Head, Key, Name
from ldpstream.agents.state.windows import WindowSpec

Store = dict[bytes, tuple[int, bytes]]


class Evaluation(NamedTuple):
    """The state: its head, the keys of its cells by name, and the keys of dead records."""

    head: Head
    cells: dict[Name, bytes]
    dead: set[bytes]


@lru_cache(maxsize=100_000)
def read_key(prefix: bytes, data: bytes) -> Key:
    key = decode_key(prefix, data)
    assert key is not None
    return key


def add(store: Store, offset: int, key: bytes, value: bytes | None) -> None:
    """Add one record of the log to a store of records, `{key: (offset, value)}`."""
    if value is None:
        store.pop(key, None)
    else:
        store.setdefault(key, (offset, value))


def evaluate(
    prefix: bytes, window: WindowSpec, partition: int, store: Mapping[bytes, tuple[int, bytes]]
):
    keys = {data: read_key(prefix, data) for data in store}
    heads = [(key.seq, -store[data][0], data) for data, key in keys.items() if key.name == HEAD]
    head, winner = Head(), b""
    if heads:
        winner = max(heads)[2]
        head = decode_head(keys[winner], store[winner][1])
    cells: dict[Name, bytes] = {}
    for data, (name, epoch, seq) in keys.items():
        pane = window.first_pane(name.number) if name.kind == "final" else name.number
        first = head.closed if name.kind == "token" else head.expired
        first = max(first, head.grouped) if name.kind in ("release", "open", "reserve") else first
        handed_over = partition > 0 and name.kind in ("count", "n", "reserve")
        first = max(first, head.gathered) if handed_over else first
        valid = name != HEAD and seq <= head.lineage.get(epoch, 0) and pane >= first
        if valid and (name not in cells or seq > keys[cells[name]].seq):
            cells[name] = data
    dead = {
        data
        for data, key in keys.items()
        if key.seq <= head.seq and data != winner and cells.get(key.name) != data
    }
    return Evaluation(head, cells, dead)
