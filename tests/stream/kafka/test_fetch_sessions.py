"""Incremental and full fetches, from a fake broker that keeps fetch sessions."""

import itertools
import random
from collections import defaultdict
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.metadata import MetadataRequest

from ldpstream.agents.broker.patches.fetch_sessions import fetch_news

PLACES = [TopicPartition(topic, number) for topic in ("trips", "visits") for number in range(3)]
NOT_FOUND, WRONG_EPOCH = 70, 71


@dataclass
class Broker:
    """Ends of logs, and what clients have been told about them.

    `version` is the newest version of fetches that it knows; it `keeps` one session, or none.
    """

    version: int = 11
    keeps: bool = True
    ends: dict[TopicPartition, int] = field(default_factory=lambda: dict.fromkeys(PLACES, 0))
    failing: set[TopicPartition] = field(default_factory=set)
    sessions: dict[int, dict[TopicPartition, list[int]]] = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=dict)
    ids: Any = field(default_factory=lambda: itertools.count(1))
    throttled: bool = False
    """Whether the client is over its quota, so that nothing is read for it."""
    lost: str = ""
    """What the network loses: "request" or "answer"."""
    asked: list[int] = field(default_factory=list)
    """The number of partitions that each fetch names."""
    told: list[int] = field(default_factory=list)
    """The number of partitions that each answer has."""

    async def send(self, node_id: int, request: Any) -> Any:
        assert node_id == 7
        if self.lost == "request":
            request.prepare({1: (0, self.version)})
            raise KafkaConnectionError
        built = request.prepare({1: (0, self.version)})
        named = {
            TopicPartition(topic, one[0]): one[-3 if self.version >= 5 else 1]
            for topic, partitions in built.topics
            for one in partitions
        }
        self.asked.append(len(named))
        error, number, answered = self._answer(built, named)
        self.told.append(len(answered))
        if self.lost == "answer":
            raise KafkaConnectionError
        topics = defaultdict[str, list[Any]](list)
        for place in answered:
            failed = place in self.failing
            said = (6, -1, -1) if failed else (0, self.ends[place], self.ends[place] - 1)
            topics[place.topic].append((place.partition, *said, 0, [], -1, b""))
        shown = [*topics.items()]
        return SimpleNamespace(
            API_VERSION=self.version,
            throttle_time_ms=100 * self.throttled,
            error_code=error,
            session_id=number,
            topics=shown,
        )

    def _answer(
        self, built: Any, named: dict[TopicPartition, int]
    ) -> tuple[int, int, list[TopicPartition]]:
        if self.version < 7:
            return 0, 0, [*named]
        number = built.session_id
        if built.session_epoch == 0:
            # There is room for one session.
            self.sessions.clear()
            if self.throttled:
                return 0, 0, []
            if not self.keeps:
                return 0, 0, [*named]
            number = next(self.ids)
            self.sessions[number], self.epochs[number] = {}, 0
        elif number not in self.sessions:
            return NOT_FOUND, 0, []
        elif built.session_epoch != self.epochs[number]:
            return WRONG_EPOCH, number, []
        self.epochs[number] += 1
        return 0, number, self._new(self.sessions[number], built, named)

    def _new(
        self,
        session: dict[TopicPartition, list[int]],
        built: Any,
        named: dict[TopicPartition, int],
    ) -> list[TopicPartition]:
        """Return the partitions of a session that have records, failed, or end elsewhere."""
        for place, offset in named.items():
            session.setdefault(place, [0, -1])[0] = offset
        for topic, partitions in built.forgotten_topics_data:
            for one in partitions:
                del session[TopicPartition(topic, one)]
        if self.throttled:
            return []
        found = []
        for place, cached in session.items():
            failed, end = place in self.failing, self.ends[place]
            if failed or cached[0] < end or cached[1] != end:
                found.append(place)
            cached[1] = -1 if failed else end
        return found


class Client:
    """The parts of a consumer that fetches use."""

    def __init__(self, broker: Broker) -> None:
        self.states = {
            place: SimpleNamespace(
                has_valid_position=True, position=0, highwater=None, lso=None, timestamp=None
            )
            for place in PLACES
        }
        self.paused: set[TopicPartition] = set()
        assignment = SimpleNamespace(state_value=self.states.get)
        self._subscription = SimpleNamespace(subscription=SimpleNamespace(assignment=assignment))
        self._client = SimpleNamespace(send=broker.send)
        self.fetch_news()

    def fetch_news(self) -> None:
        fetch_news(self._client, self._subscription)

    async def fetch(self, *, seeks: dict[TopicPartition, int] | None = None) -> bool:
        """Fetch, and record the answer as aiokafka does; `seeks` happen before that."""
        topics = defaultdict[str, list[Any]](list)
        for place, state in self.states.items():
            if place not in self.paused:
                topics[place.topic].append((place.partition, state.position, 1 << 20))
        request = FetchRequest(500, 1, 1 << 20, 1, [*topics.items()])
        send, states = self._client.send, self.states
        asked = {place: state.position for place, state in states.items()}
        for place, offset in (seeks or {}).items():
            states[place].position = offset
        response = await send(7, request)
        for topic, partitions in response.topics:
            for number, error, highwater, stable, *_ in partitions:
                place = TopicPartition(topic, number)
                if not error and states[place].position == asked[place]:
                    states[place].highwater, states[place].lso = highwater, stable
                    states[place].timestamp = 1
        return not response.error_code

    def forget_times(self) -> None:
        for state in self.states.values():
            state.timestamp = None


async def test_at_rest_no_partition_is_named_and_every_one_is_answered() -> None:
    broker = Broker()
    broker.ends[PLACES[0]] = 5
    client = Client(broker)
    client.states[PLACES[0]].position = 5
    for _ in range(3):
        client.forget_times()
        assert await client.fetch()
        assert all(state.timestamp is not None for state in client.states.values())
        assert [state.highwater for state in client.states.values()] == [5, 0, 0, 0, 0, 0]
    assert (broker.asked, broker.told) == ([6, 0, 0], [6, 0, 0])


@pytest.mark.parametrize("broker", [Broker(version=6), Broker(version=4), Broker(keeps=False)])
async def test_a_broker_without_sessions_is_asked_for_everything(broker: Broker) -> None:
    client = Client(broker)
    for _ in range(3):
        assert await client.fetch()
    assert (broker.asked, broker.told) == ([6, 6, 6], [6, 6, 6])


async def test_a_partition_that_fails_is_not_taken_for_one_at_rest() -> None:
    broker = Broker()
    client = Client(broker)
    await client.fetch()
    for failing in ({PLACES[1]}, {PLACES[1]}, set()):
        broker.failing = failing
        client.forget_times()
        await client.fetch()
        answered = {place for place, state in client.states.items() if state.timestamp is not None}
        assert answered == set(PLACES) - failing


async def test_an_answer_to_a_client_over_its_quota_proves_nothing() -> None:
    """The broker has read the partition's new records, and leaves them out."""
    broker = Broker()
    client = Client(broker)
    await client.fetch()
    broker.ends[PLACES[0]], broker.throttled = 5, True
    client.forget_times()
    assert await client.fetch()
    assert {state.timestamp for state in client.states.values()} == {None}
    broker.throttled = False
    assert await client.fetch()
    assert client.states[PLACES[0]].highwater == 5
    assert broker.asked == [6, 0, 0]


async def test_a_partition_that_was_never_answered_has_no_highwater(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No broker leaves a partition out of the first answer of a session."""
    broker = Broker()
    client = Client(broker)
    monkeypatch.setattr(broker, "_new", lambda *_: [])
    assert await client.fetch()
    assert {state.highwater for state in client.states.values()} == {None}


async def test_other_requests_are_sent_as_they_are() -> None:
    sent: list[Any] = []

    async def send(node_id: int, request: Any, **options: Any) -> None:
        sent.append((node_id, request, options))

    client = Client(Broker())
    client._client.send = send
    client.fetch_news()
    request = MetadataRequest(["trips"])
    await client._client.send(3, request, group=1)
    assert sent == [(3, request, {"group": 1})]


@pytest.mark.parametrize("seed", range(30))
async def test_a_client_knows_what_it_would_if_it_asked_for_everything(seed: int) -> None:
    """This holds whatever is appended, read, sought, paused, lost or forgotten by the broker."""
    rng, broker = random.Random(seed), Broker()
    client = Client(broker)
    for _ in range(200):
        for place in rng.sample(PLACES, rng.randrange(3)):
            broker.ends[place] += rng.randrange(1, 4)
        for place in rng.sample(PLACES, rng.randrange(3)):
            # The client has read up to there.
            state = client.states[place]
            state.position = max(state.position, state.highwater or 0)
        if rng.random() < 0.2:
            client.paused ^= {rng.choice(PLACES)}
        if rng.random() < 0.1:
            broker.sessions.clear()
        if rng.random() < 0.1:
            broker.epochs = {number: epoch + 1 for number, epoch in broker.epochs.items()}
        broker.failing = {rng.choice(PLACES)} if rng.random() < 0.2 else set()
        broker.throttled = rng.random() < 0.1
        broker.lost = rng.choice(["request", "answer"]) if rng.random() < 0.1 else ""
        seeks = {place: rng.randrange(5) for place in rng.sample(PLACES, rng.randrange(2))}
        before = {place: state.position for place, state in client.states.items()}
        known = {place: state.highwater for place, state in client.states.items()}
        client.forget_times()
        try:
            answered = await client.fetch(seeks=seeks)
        except KafkaConnectionError:
            answered = False
        if answered and broker.sessions:
            # The session has exactly the partitions that the client reads.
            (session,) = broker.sessions.values()
            wanted = {place: at for place, at in before.items() if place not in client.paused}
            assert {place: cached[0] for place, cached in session.items()} == wanted
        for place, state in client.states.items():
            fresh = (
                answered
                and not broker.throttled
                and place not in client.paused | broker.failing
                and state.position == before[place]
            )
            assert (state.timestamp is not None) == fresh
            assert state.highwater == (broker.ends[place] if fresh else known[place])
    assert min(broker.asked) == 0
