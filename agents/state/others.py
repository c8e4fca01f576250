"""The other states in a changelog, as they were when its reader began.

A collection whose spec was changed goes on in a state of its own, and the one before stays in the
topic. Where the earlier spec was named in `accept` its state says where it handed over; a state of
which no head says so was left behind: nobody takes its reports, nor closes its windows.
"""

from collections.abc import Sequence
from typing import Final

from ldpstream.agents.state.context import Context
from ldpstream.agents.state.records import (
    HEAD,
    VERSION,
    Head,
    RecordError,
    decode_head,
    decode_key,
    state_fingerprint,
    state_prefix,
)
from ldpstream.agents.state.windows import NEVER

_VERSION: Final = bytes((VERSION,))
_NONE: Final = Head()


class OtherStates:
    """The winning heads of all states in a log but the reader's own, by what their keys begin with.

    They are right at the log's end (rule 5).
    """

    def __init__(self, context: Context) -> None:
        specs = context.spec, *context.accept
        self._known = {spec.fingerprint for spec in specs}
        self._prefix = state_prefix(context)
        self._heads: dict[bytes, Head] = {}

    def has(self, key: bytes) -> bool:
        """Return whether a key is another state's, if it is a key."""
        return not key.startswith(self._prefix) and key.startswith(_VERSION)

    def note(self, key: bytes, value: bytes) -> None:
        """Take a record of another state, in the log's order; what cannot be read tells nothing."""
        state = key[: len(self._prefix)]
        try:
            found = decode_key(state, key)
            if found is None or found.name != HEAD:
                return
            if found.seq > self._heads.get(state, _NONE).seq:
                self._heads[state] = decode_head(found, value)
        except RecordError:
            return

    def left_behind(self) -> Sequence[bytes]:
        """Return the fingerprints of specs, neither ours nor accepted, that never handed over."""
        states = {
            state_fingerprint(state)
            for state, head in self._heads.items()
            if head.handover == NEVER
        }
        return sorted(states - self._known)
