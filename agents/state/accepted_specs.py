"""The other states in a changelog, as they were when its reader started.

A collection whose spec was changed continues in a state of its own, and the previous state stays in
the topic. If the earlier spec is named in `accept`, the previous state's head says at which offset
it handed over. A state without such an offset was left behind: nobody counts its reports or closes
its windows.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from ldpstream.agents.state.context import Context
from ldpstream.agents.state.encoding import (
    decode_head,
    decode_key,
    split_state,
)
from ldpstream.agents.state.records import HEAD, Head, RecordError
from ldpstream.agents.state.windows import NEVER, WindowIdentity

_NONE: Final = Head()


class OtherStates:
    """The winning heads of all other states in a log, by their key prefix.

    They are correct once the log's end has been reached (rule 5).
    """

    def __init__(self, context: Context) -> None:
        specs = context.spec, *context.accept
        self._accepted = {spec.fingerprint for spec in specs}
        self._fingerprint = context.spec.fingerprint
        self._windows = context.window.identity
        self._heads: dict[bytes, Head] = {}
        self._conflicting: dict[WindowIdentity, int] = {}

    def add(self, key: bytes, value: bytes | None, *, since: bool) -> None:
        """Add a record of another state, in the log's order; unreadable ones are ignored.

        Records that arrive `since` the log's end was first reached come from a later configuration,
        which includes this state, or from a worker that still has another one.
        """
        try:
            state, fingerprint, windows = split_state(key)
            key_here = decode_key(state, key)
            if value is None or key_here is None or key_here.name != HEAD:
                return
            if not since and key_here.seq > self._heads.get(state, _NONE).seq:
                self._heads[state] = decode_head(key_here, value)
        except RecordError:
            return
        if since and fingerprint == self._fingerprint and windows != self._windows:
            self._conflicting[windows] = key_here.seq

    def conflicts(self) -> Mapping[WindowIdentity, int]:
        """Return the last seq, by windows, of states of our spec with other windows.

        Only states that have advanced since the log's end was first reached: the rest are history.
        """
        return self._conflicting

    def windows(self) -> AbstractSet[WindowIdentity]:
        """Return the other windows that our spec has been counted into, now or earlier."""
        states = [split_state(state) for state in self._heads]
        identities = {
            windows for _, fingerprint, windows in states if fingerprint == self._fingerprint
        }
        return (identities | self._conflicting.keys()) - {self._windows}

    def left_behind(self) -> Sequence[bytes]:
        """Return the fingerprints of specs, neither ours nor accepted, that never handed over."""
        states = {
            split_state(state)[1] for state, head in self._heads.items() if head.cutover == NEVER
        }
        return sorted(states - self._accepted)
