"""The city of the demonstration: districts, people who move, and its configuration."""

from typing import Any

import numpy as np
import pytest

from ldpstream.agents.demo.city import Population, build_city
from ldpstream.agents.demo.setting import COLLECTION, WINDOW_MS, demo_config


def test_a_city_follows_from_its_seed() -> None:
    one, same, other = build_city(1), build_city(1), build_city(2)
    assert one.places == same.places
    assert np.array_equal(one.attraction, same.attraction)
    assert one.places != other.places or not np.array_equal(one.attraction, other.attraction)


@pytest.mark.parametrize("seed", range(20))
def test_districts_hold_every_place_once(seed: int) -> None:
    city = build_city(seed)
    blocks = city.blocks()
    assert [place for block in blocks for place in block] == list(city.places)
    assert len(set(city.places)) == len(city.places)
    assert len(blocks) == len(city.districts)
    for district, block in zip(city.districts, blocks, strict=True):
        assert 5 <= len(block) <= 20
        assert all(place.startswith(f"{district}/") for place in block)
    assert (city.attraction > 0).all()


def shares(population: Population) -> np.ndarray[Any, np.dtype[np.float64]]:
    places = len(population.city.places)
    return np.bincount(population.where, minlength=places) / population.where.size


@pytest.mark.slow
def test_people_move_with_the_hours_and_nobody_is_lost() -> None:
    city = build_city(1)
    people = Population(city, people=5_000, seed=1)
    works = np.isin(city.district_of_place, [city.kinds.index("work"), city.kinds.index("evening")])
    assert works.any()
    before = shares(people)
    for _ in range(30):
        people.advance(hours=0.2, moving=0.5)
    noon = shares(people)
    for _ in range(60):
        people.advance(hours=0.2, moving=0.5)
    night = shares(people)
    assert people.where.size == 5_000
    assert people.where.min() >= 0
    assert people.where.max() < len(city.places)
    at_work = np.array([kind == "work" for kind in city.kinds])[city.district_of_place]
    assert noon[at_work].sum() > night[at_work].sum() + 0.1
    assert np.abs(noon - before).sum() > 0.2


def test_nobody_moves_who_should_not() -> None:
    people = Population(build_city(1), people=500, seed=1)
    before = people.where.copy()
    people.advance(hours=1.0, moving=0.0)
    assert np.array_equal(people.where, before)
    assert set(people.report(200).tolist()) <= set(before.tolist())


def test_the_demonstration_is_a_configuration_like_any_other() -> None:
    city = build_city(1)
    config = demo_config(city, bootstrap="127.0.0.1:1", port=0)
    collection = config.collections[COLLECTION]
    assert collection.spec.domain.size == len(city.places)
    assert collection.window.size_ms == WINDOW_MS
    assert collection.spec.mechanism.certify().passed
