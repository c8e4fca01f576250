"""Small specs of every kind, for tests that change one key at a time."""

from pathlib import Path

from ldpstream.mechanisms import CollectionSpec

BASE = {"mechanism": "block-hadamard", "epsilon": 1.0, "domain": {"values": ["a", "b", "c"]}}
BINARY = {"mechanism": "binary", "epsilon": [1.0, 2.0], "domain": {"values": ["no", "yes"]}}
BITS = {"mechanism": "l1-bits", "epsilon": 0.5, "domain": {"size": 10}}
GEOMETRIC = {"mechanism": "l1-geometric", "epsilon": 0.5, "domain": {"size": 10}}
HIGH_LOW = {
    "mechanism": "high-low",
    "epsilon": 2.0,
    "domain": {"size": 10},
    "sensitive": [0, 9],
}


def make(
    tmp_path: Path, mapping: dict, name: str = "checkins", **changes: object
) -> CollectionSpec:
    return CollectionSpec.from_mapping(name, mapping | changes, base=tmp_path)
