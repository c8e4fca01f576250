"""The configuration file of a lab, as text."""

import json
from collections.abc import Mapping

from tests.brokers import Broker

_ALIKE = """mechanism = "block-hadamard"
epsilon = 1.0
domain = {{ size = 12, blocks = 4 }}
partitions = {partitions}
precision = "1ms"
minimum = 1
window = {{ size = "{size}", {window} }}
publish = {{ every = "500ms", top = 12 }}
{extra}"""


def collection(*, partitions: int, window: str, extra: str, size: str = "10s") -> str:
    """Return the table of 12 values in three blocks, without its topic; `extra` adds lines."""
    return _ALIKE.format(partitions=partitions, size=size, window=window, extra=extra)


def configuration(broker: Broker, bodies: Mapping[str, str], *, run: str) -> str:
    """Return the file: `bodies` are collections by name, `run` makes topics and ids unique."""
    tables = [
        _kafka(broker),
        f'[worker]\nid = "w-{run}"\nhttp = "127.0.0.1:0"',
        *(f'[collection.{name}]\ntopic = "{name}-{run}"\n{body}' for name, body in bodies.items()),
    ]
    return "\n".join(tables)


def _kafka(broker: Broker) -> str:
    options = "\n".join(f"{key} = {_toml(value)}" for key, value in broker.options.items())
    return (
        f'[kafka]\nbootstrap = "{broker.bootstrap}"\n{options}\n'
        "session_timeout_ms = 6000\nheartbeat_interval_ms = 1000"
    )


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {_toml(inner)}' for key, inner in value.items())} }}"
    return json.dumps(value)
