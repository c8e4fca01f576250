"""A reader of server-sent events (as in the HTML standard) in pieces of any length."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from ldpstream.agents.document import EstimateDocument

EVENT_BYTES: Final = 16 << 20
"""The longest event: a worker sends none that is longer."""


@dataclass(frozen=True)
class Event:
    """A change of a window; `id` is the start of a final's window in epoch ms, else None."""

    kind: Literal["final", "provisional"]
    id: int | None
    document: EstimateDocument


class EventReader:
    """Turns bytes into events; a stream is resumed after `last_id`."""

    def __init__(self, last_id: int | None) -> None:
        self.last_id = last_id
        self._rest = b""

    def restart(self) -> None:
        """Discard an incomplete event."""
        self._rest = b""

    def feed(self, piece: bytes) -> Iterator[Event]:
        """Yield the events that this piece completes.

        Raises:
            ValueError: for anything but an event of a worker.
        """
        *blocks, self._rest = (self._rest + piece).split(b"\n\n")
        if len(self._rest) > EVENT_BYTES:
            raise ValueError(f"expected events of at most {EVENT_BYTES} bytes")
        for block in blocks:
            event = self._read(block)
            if event is not None:
                yield event

    def _read(self, block: bytes) -> Event | None:
        fields: dict[bytes, list[bytes]] = {}
        for line in block.split(b"\n"):
            name, _, value = line.partition(b":")
            fields.setdefault(name, []).append(value.removeprefix(b" "))
        kind = fields.get(b"event", [b""])[-1].decode("ascii", "replace")
        # A comment, or a kind of event that this version does not know.
        if kind not in ("final", "provisional"):
            return None
        last_id = int(fields[b"id"][-1]) if b"id" in fields else None
        if last_id is not None:
            self.last_id = last_id
        document = EstimateDocument.model_validate_json(b"\n".join(fields.get(b"data", [])))
        return Event("final" if kind == "final" else "provisional", last_id, document)
