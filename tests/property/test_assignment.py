"""Partitions of a group: each has one owner, shares are even, and nothing moves needlessly."""

from collections import Counter
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from ldpstream.agents.broker.groups import Partition, assign

TOPICS = "abcdef"
topics = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 7), min_size=1)
members = st.integers(1, 5).map(lambda n: [f"m{i}" for i in range(n)])
claims = st.dictionaries(
    st.sampled_from([f"m{i}" for i in range(7)]),
    st.sets(st.tuples(st.sampled_from(TOPICS), st.integers(0, 8))),
)


def alike(names: Iterable[str], partitions: Iterable[str]) -> dict[str, list[str]]:
    return {name: list(partitions) for name in names}


def sizes(found: dict[str, set[Partition]]) -> list[int]:
    return sorted((len(owned) for owned in found.values()), reverse=True)


def test_uneven_assignments_become_even():
    three = {f"w{i}": ["a"] for i in range(3)}
    assert sizes(assign({}, three, {"a": 4})) == [2, 1, 1]
    six = dict.fromkeys(TOPICS, 1)
    assert sizes(assign({}, alike(three, six), six)) == [2, 2, 2]


@given(claims, members, topics)
def test_each_topic_and_all_together_are_shared_evenly(
    owned: dict[str, set[Partition]], names: list[str], partitions: dict[str, int]
):
    found = assign(owned, alike(names, partitions), partitions)
    every = [one for of_member in found.values() for one in of_member]
    assert Counter(every) == Counter((t, p) for t, n in partitions.items() for p in range(n))
    assert found.keys() == set(names)
    for topic in partitions:
        shares = [sum(one[0] == topic for one in of_member) for of_member in found.values()]
        assert max(shares) - min(shares) <= 1
    assert max(sizes(found)) - min(sizes(found)) <= 1


@given(claims, members, topics)
def test_an_even_assignment_stays(
    owned: dict[str, set[Partition]], names: list[str], partitions: dict[str, int]
):
    subscribed = alike(names, partitions)
    found = assign(owned, subscribed, partitions)
    assert assign(found, subscribed, partitions) == found


@given(members, topics)
def test_when_a_member_leaves_little_but_its_partitions_moves(
    names: list[str],
    partitions: dict[str, int],
):
    subscribed = alike([*names, "leaving"], partitions)
    before = assign({}, subscribed, partitions)
    left = before.pop("leaving")
    after = assign(before, alike(names, partitions), partitions)
    moved = sum(len(after[name] - before[name]) for name in names)
    assert moved <= 2 * len(left)


@given(
    claims,
    st.dictionaries(st.sampled_from(["m0", "m1", "m2"]), st.sets(st.sampled_from("abc"))),
    topics,
)
def test_only_subscribed_members_own_partitions(
    owned: dict[str, set[Partition]],
    subscribed: dict[str, set[str]],
    partitions: dict[str, int],
):
    found = assign(owned, subscribed, partitions)
    assert all(topic in subscribed[m] for m, every in found.items() for topic, _ in every)
    wanted = {t for every in subscribed.values() for t in every} & partitions.keys()
    assert sum(map(len, found.values())) == sum(partitions[t] for t in wanted)
