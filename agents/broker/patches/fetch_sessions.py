"""Fetch only what is new, in sessions with each broker (KIP-227, Kafka 1.1 and later).

aiokafka names all of its partitions in each fetch, and gets an answer about each of them even if
nothing has happened: 25 us per partition. In a session the broker remembers what it was asked and
what it answered. A fetch then names only partitions whose position has changed, and an answer omits
partitions without records whose end has not moved. So omission is an answer, too: the log still
ends at the same offset, and the client stores that as if it had been sent. The exception is an
answer to a client over its quota, from which the broker omits what it has read.

Seen in aiokafka 0.14. `fetch_news` installs it on the client of one consumer.
"""

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from aiokafka.protocol.api import Request
from aiokafka.protocol.fetch import FetchRequest, FetchRequestStruct

_FIRST_VERSION: Final = 7
"""The first version of fetches with sessions."""
_MOST_EPOCH: Final = (1 << 31) - 1
_OFFSET: Final = -3
"""The index of the position in a fetch's fields for a partition."""

_Partition = tuple[str, int]
"""Equal to a `TopicPartition`, but much faster to make."""


def fetch_news(client: Any, subscriptions: Any) -> None:
    """Make a started consumer fetch in sessions, given its client and its subscriptions."""
    client.send = partial(_send, client.send, subscriptions, {})


async def _send(
    send: Callable[..., Awaitable[Any]],
    subscriptions: Any,
    sessions: dict[int, "FetchSession"],
    node_id: int,
    request: Any,
    **options: Any,
) -> Any:
    """Send a request to a broker as the client does, but fetches in the broker's session."""
    if not isinstance(request, FetchRequest):
        return await send(node_id, request, **options)
    # Without an answer it is unknown what the broker remembers: the next fetch begins a session.
    session = sessions.pop(node_id, None) or FetchSession()
    response = await send(node_id, _SessionRequest(request, session), **options)
    if response.API_VERSION >= _FIRST_VERSION and session.record_answer(response):
        sessions[node_id] = session
        if not response.throttle_time_ms:
            _note_unchanged(subscriptions, session)
    return response


def _note_unchanged(subscriptions: Any, session: "FetchSession") -> None:
    """Store the ends of partitions that an answer omits, as the client does of those it names."""
    subscription, now_ms = subscriptions.subscription, time.time_ns() // 1_000_000
    if subscription is None or subscription.assignment is None:
        return
    for place, offset, highwater, stable in session.unchanged():
        state = subscription.assignment.state_value(place)
        # A seek or a pause may have come before the answer.
        if state is not None and state.has_valid_position and state.position == offset:
            state.highwater, state.lso, state.timestamp = highwater, stable, now_ms


class FetchSession:
    """A session with one broker: what the broker remembers about this client."""

    def __init__(self) -> None:
        self._id = self._epoch = 0
        # The last request about each partition.
        self._requested: dict[_Partition, tuple[int, ...]] = {}
        # The last known high watermark and last stable offset.
        self._ends: dict[_Partition, tuple[int, int]] = {}
        # The partitions in its last answer.
        self._named: set[_Partition] = set()

    def reduce(self, request: Any) -> None:
        """Reduce a fetch of all partitions to what the broker does not know."""
        fields_by_place = {
            (topic, fields[0]): fields
            for topic, partitions in request.topics
            for fields in partitions
        }
        request.session_id, request.session_epoch = self._id, self._epoch
        if self._epoch:
            new = {
                place: fields
                for place, fields in fields_by_place.items()
                if self._requested.get(place) != fields
            }
            gone = {place: place[1] for place in self._requested if place not in fields_by_place}
            request.topics = _by_topic(new)
            request.forgotten_topics_data = _by_topic(gone)
            for place in gone:
                self._ends.pop(place, None)
        self._requested = fields_by_place

    def record_answer(self, response: Any) -> bool:
        """Take over what an answer says; return whether the session continues."""
        if response.error_code or not response.session_id:
            return False
        self._id, self._epoch = response.session_id, self._epoch % _MOST_EPOCH + 1
        self._named = set()
        for topic, partitions in response.topics:
            for number, _, highwater, stable, *_ in partitions:
                self._named.add((topic, number))
                # A failing partition is named until it works again, and then once more.
                self._ends[topic, number] = highwater, stable
        return True

    def unchanged(self) -> Iterator[tuple[_Partition, int, int, int]]:
        """Yield the partitions that the last answer omitted.

        Each with the position asked for, the high watermark and the last stable offset.
        """
        for place, fields in self._requested.items():
            if place not in self._named and place in self._ends:
                yield place, fields[_OFFSET], *self._ends[place]


class _SessionRequest(Request[FetchRequestStruct]):
    API_KEY = FetchRequest.API_KEY

    def __init__(self, whole: FetchRequest, session: FetchSession) -> None:
        self._whole = whole
        self._session = session

    def build(self, request_struct_class: type[FetchRequestStruct]) -> FetchRequestStruct:
        built = self._whole.build(request_struct_class)
        if request_struct_class.API_VERSION >= _FIRST_VERSION:
            self._session.reduce(built)
        return built


def _by_topic(by_place: Mapping[_Partition, Any]) -> list[tuple[str, list[Any]]]:
    topics = defaultdict[str, list[Any]](list)
    for (topic, _), fields in by_place.items():
        topics[topic].append(fields)
    return [*topics.items()]
