"""The rules of flushing taken away: what is waited for, and what a failed send ends."""

from dataclasses import replace

from tests.stream.simulation.worker import Flight, Worker


class EagerHead(Worker):
    """The head is sent without waiting for the cells that it makes valid."""

    def acknowledged(self, flight: Flight) -> bool:
        return all(send.state == "acked" for send in flight.sends if send.copy is not None)


class EagerCopies(Worker):
    """The head is sent without waiting for the copies."""

    def acknowledged(self, flight: Flight) -> bool:
        return all(send.state == "acked" for send in flight.sends if send.copy is None)


class FailureIgnored(Worker):
    """A failed send counts as still in flight, and then as acknowledged."""

    def flush(self, p: int) -> None:
        held = self.held.get(p)
        for send in held.flight.sends if held and held.flight else ():
            send.state = "acked" if send.state == "failed" else send.state
        super().flush(p)


class Pipelined(Worker):
    """The next flush starts when the head is acknowledged, without reading it back."""

    def flush(self, p: int) -> None:
        held = self.held.get(p)
        if held and held.flight and held.flight.head_sent and self.acknowledged(held.flight):
            part = held.part
            part.base, part.flight = part.flight, None
            held.flight = None
        super().flush(p)

    def settle(self, p: int) -> None:
        held, seen = self.held.get(p), self.replicas[p].head
        if held and seen.seq > held.part.base.seq and seen.epoch != held.part.epoch:
            del self.held[p]
        elif held:
            self.world.commit(p, held.part.base.next, self.generation)


class Retry(Worker):
    """After a failed send the same epoch flushes its newer state again under the same seq."""

    def flush(self, p: int) -> None:
        held = self.held.get(p)
        if not (held and held.flight and any(s.state == "failed" for s in held.flight.sends)):
            super().flush(p)
            return
        part, before = held.part, held.flight.flush
        outcomes, part.outcomes = held.flight.outcomes + part.outcomes, []
        part.flight, part._changed = None, True
        again = part.flush()
        cells = {**dict(before.cells), **dict(again.cells)}
        sends = [self.world.send_copy(p, copy) for copy in (*before.copies, *again.copies)]
        sends += [self.world.send(p, key, value) for key, value in cells.items()]
        held.flight = Flight(replace(again, cells=tuple(cells.items())), outcomes, sends)
