"""A made-up city: places in districts, and people who move between them over the day.

Everything follows from a seed, so two runs with one seed have the same city and the same people.
The district of a place is what the demonstration's reports disclose; the place within it is what
they protect.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

_DISTRICTS: Final = (
    ("old-town", "evening"),
    ("harbour", "work"),
    ("university", "work"),
    ("hill", "home"),
    ("station", "work"),
    ("riverside", "evening"),
    ("gardens", "home"),
    ("mills", "work"),
    ("northgate", "home"),
    ("market", "evening"),
    ("orchard", "home"),
    ("docks", "work"),
)
_PLACES: Final = (
    "square", "bakery", "school", "park", "library", "clinic", "gym", "cinema", "cafe", "bank",
    "hotel", "museum", "pool", "theatre", "court", "depot", "studio", "workshop", "bridge", "tower",
)  # fmt: skip
_FEWEST_PLACES: Final = 5
_REACH: Final = 0.35
"""In city widths: attraction falls by a factor e over this distance."""
_PULL: Final = {"home": 2.0, "work": 13.0, "evening": 19.5}
"""The hour of the day at which each kind of district attracts most."""


@dataclass(frozen=True)
class City:
    """Places in districts on a unit square.

    `places` are `"district/place"`, `district_of_place` int64 `(k,)`, `attraction` float64 `(k,)`
    above 0, `distance` float64 `(districts, districts)` in city widths.
    """

    districts: tuple[str, ...]
    kinds: tuple[str, ...]
    places: tuple[str, ...]
    district_of_place: NDArray[np.int64]
    attraction: NDArray[np.float64]
    distance: NDArray[np.float64]

    def blocks(self) -> list[list[str]]:
        """Return the places by district, as the configuration's `blocks` takes them."""
        return [
            [
                place
                for place, own in zip(self.places, self.district_of_place, strict=True)
                if own == d
            ]
            for d in range(len(self.districts))
        ]

    def appeal(self, hour: float) -> NDArray[np.float64]:
        """Return how much every district attracts at an hour of the day, float64 `(districts,)`."""
        hours = np.array([_PULL[kind] for kind in self.kinds])
        apart = np.abs(hours - hour % 24.0)
        return np.exp(-0.5 * (np.minimum(apart, 24.0 - apart) / 3.0) ** 2) + 0.05


def build_city(seed: int) -> City:
    """Build a city: districts at random points, 5 to 20 places each, few of them popular."""
    rng = np.random.default_rng([seed, 0])
    sizes = rng.integers(_FEWEST_PLACES, len(_PLACES) + 1, size=len(_DISTRICTS))
    centres = rng.random((len(_DISTRICTS), 2))
    places: list[str] = []
    attraction: list[NDArray[np.float64]] = []
    for (name, _), size in zip(_DISTRICTS, sizes, strict=True):
        places.extend(f"{name}/{place}" for place in _PLACES[:size])
        attraction.append(rng.permutation(1.0 / np.arange(1, size + 1)))
    return City(
        districts=tuple(name for name, _ in _DISTRICTS),
        kinds=tuple(kind for _, kind in _DISTRICTS),
        places=tuple(places),
        district_of_place=np.repeat(np.arange(len(sizes), dtype=np.int64), sizes),
        attraction=np.concatenate(attraction),
        distance=np.linalg.norm(centres[:, None] - centres[None], axis=-1),
    )


class Population:
    """People of a city, each at one place at any time."""

    def __init__(self, city: City, *, people: int, seed: int) -> None:
        self.city = city
        self.hour = 7.0
        self._rng = np.random.default_rng([seed, 1])
        self._starts = np.searchsorted(
            city.district_of_place, np.arange(len(city.districts) + 1), side="left"
        )
        everywhere = city.attraction / city.attraction.sum()
        self.where: NDArray[np.int64] = self._rng.choice(
            len(city.places), size=people, p=everywhere
        ).astype(np.int64)

    def advance(self, *, hours: float, moving: float) -> None:
        """Advance the clock by `hours`, and move a share `moving` (0 to 1) of the people.

        They choose a district by the hour and its distance, then a place by its attraction.
        """
        self.hour = (self.hour + hours) % 24.0
        movers = np.flatnonzero(self._rng.random(self.where.size) < moving)
        here = self.city.district_of_place[self.where[movers]]
        weights = self.city.appeal(self.hour) * np.exp(-self.city.distance / _REACH)
        for district in np.unique(here):
            leaving = movers[here == district]
            p = weights[district] / weights[district].sum()
            goals = self._rng.choice(p.size, size=leaving.size, p=p)
            for goal in np.unique(goals):
                arriving = leaving[goals == goal]
                inside = slice(self._starts[goal], self._starts[goal + 1])
                charm = self.city.attraction[inside]
                chosen = self._rng.choice(charm.size, size=arriving.size, p=charm / charm.sum())
                self.where[arriving] = self._starts[goal] + chosen

    def report(self, n: int) -> NDArray[np.int64]:
        """Return where `n` people drawn at random are now: place numbers, int64 `(n,)`."""
        return self.where[self._rng.integers(self.where.size, size=n)]
