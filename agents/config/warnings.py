"""Warnings about budgets that protect in name only."""

from collections.abc import Iterable, Iterator

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.privacy.nominal import nominal_warning


def nominal_warnings(collections: Iterable[CollectionConfig]) -> Iterator[str]:
    """Yield a warning for each collection, and each spec it accepts, that protects in name only."""
    for collection in collections:
        for one in (collection, *collection.accept):
            if warning := nominal_warning(one.name, one.spec.mechanism.policy):
                yield warning
