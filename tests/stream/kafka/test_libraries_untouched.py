"""A user's own clients are left alone, and what `broker/patches` mends is still wrong."""

import subprocess
import sys
from pathlib import Path

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import READ_COMMITTED, PartitionRecords
from aiokafka.record.memory_records import MemoryRecords

from tests.unreadable import unreadable

_COMPARE = """
import importlib, pkgutil, sys
from pathlib import Path

import aiokafka, aiokafka.admin, aiokafka.helpers, faust, faust.agents, faust.tables.manager
import faust.transport.drivers.aiokafka
import mode

LIBRARIES = ("aiokafka", "faust", "mode")
# Both packages import their names when they are first used.
for package in (faust, mode):
    for name in package.__all__:
        getattr(package, name)
# What Faust and Python fill themselves, whoever uses them, for example when a service is made.
FILLED = {"registry", "_abc_impl", "_tasks"}
FILLED |= {"__abstractmethods__", "__annotations__", "__warningregistry__"}


def content(value):
    \"""Return what a value is: itself, and for a container also what it holds.\"""
    if isinstance(value, dict):
        return id(value), tuple((repr(key), id(one)) for key, one in [*value.items()])
    if isinstance(value, (list, tuple, set, frozenset)):
        return id(value), tuple(sorted(map(id, value)))
    return (id(value),)


def look(modules):
    found = {}
    for name in modules:
        for key, value in [*vars(sys.modules[name]).items()]:
            if key in FILLED or key == "__builtins__":
                continue
            # A submodule becomes a name of its package when anybody imports it.
            if isinstance(value, type(sys)):
                continue
            found[name, key] = content(value)
            if isinstance(value, type) and value.__module__.partition(".")[0] in LIBRARIES:
                for attribute, one in [*vars(value).items()]:
                    if attribute not in FILLED:
                        found[name, key, attribute] = content(one)
    return found


modules = [name for name in sys.modules if name.partition(".")[0] in LIBRARIES]
before = look(modules)
import ldpstream.agents
for one in pkgutil.walk_packages(ldpstream.agents.__path__, "ldpstream.agents."):
    if not one.name.endswith("__main__"):
        importlib.import_module(one.name)
from ldpstream.agents.config import read_config
from ldpstream.agents.broker.clients import connection
from ldpstream.agents.worker import attach

table = {"mechanism": "l1-bits", "epsilon": 1.0, "domain": {"size": 4}, "window": {"size": "1h"}}
tables = {"collection": {"city": table}}
app = faust.App("own", store="memory://")
attach(app, read_config(tables, base=Path(), environment={}))
# What all of its clients are made with.
connection("broker:9092", {})


def show():
    after = look(modules)
    different = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    print(len(before) > 10_000, *sorted(map(str, different)), sep="\\n")


show()
from aiokafka.errors import UnknownError, kafka_errors, for_code
from ldpstream.agents.broker.patches.error_names import name_errors

assert for_code(87) is UnknownError  # Later errors have no names.
known = {**kafka_errors}
name_errors()
assert known.items() <= kafka_errors.items()
assert all(issubclass(kafka_errors[code], UnknownError) for code in kafka_errors.keys() - known)
import aiokafka.consumer.fetcher as one; one.MemoryRecords = object
faust.App.on_webserver_init = None
show()
"""


_REPLACED = ("MemoryRecords", "on_webserver_init")


def test_importing_and_attaching_leave_aiokafka_and_faust_as_they_were() -> None:
    """What is named or replaced afterwards is noticed.

    A patch that names errors adds kinds of unknown errors to one table, and changes no other.
    """
    root = Path(__file__).resolve().parents[3]
    run = subprocess.run([sys.executable, "-c", _COMPARE], capture_output=True, text=True, cwd=root)
    assert run.returncode == 0, run.stderr
    enough, after, *found = run.stdout.splitlines()
    assert (enough, after) == ("True", "True")
    assert "('aiokafka.consumer.fetcher', 'MemoryRecords')" in found
    assert "('faust.app.base', 'App', 'on_webserver_init')" in found
    rest = [one for one in found if not any(f"'{name}'" in one for name in _REPLACED)]
    assert rest == ["('aiokafka.errors', 'kafka_errors')"]


def test_a_batch_that_cannot_be_read_raises_at_every_fetch() -> None:
    records = MemoryRecords(unreadable([b"readable"]))
    place = TopicPartition("trips", 0)
    read = PartitionRecords(place, records, [], 0, None, None, True, READ_COMMITTED)
    with pytest.raises(UnicodeDecodeError):
        list(read)
