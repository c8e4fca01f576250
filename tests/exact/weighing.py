"""Mechanisms with public weights."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpstream.mechanisms import CollectionSpec
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.l1.public import L1BitsPublicWeights, L1GeometricPublicWeights
from ldpstream.mechanisms.families.weights.public import PublicWeights

IDS = pytest.mark.parametrize("mechanism_id", ["l1-bits", "l1-geometric"])
KINDS = pytest.mark.parametrize("kind", [L1BitsPublicWeights, L1GeometricPublicWeights])
PLAIN = {L1BitsPublicWeights: L1Bits, L1GeometricPublicWeights: L1Geometric}
SETS = [np.array([1]), np.array([0, 1]), np.array([1, 2, 3]), np.arange(4)]


def weighted(kind: type[PublicWeights], shape: tuple[int, ...], largest: int) -> PublicWeights:
    return kind(PLAIN[kind](1.0, shape), largest)


def spec_of(mechanism_id: str, weights: object, **keys: object) -> CollectionSpec:
    table: dict[str, Any] = {"mechanism": mechanism_id, "epsilon": 1.0, "domain": {"size": 6}}
    return CollectionSpec.from_mapping("shop", table | {"weights": weights} | keys, base=Path())
