"""What is taken from private places of aiokafka and Faust stands in two rooms, and exists.

A new version of either may rename it: this names each file and name that breaks, without importing
anything of ldpstream.
"""

import ast
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.house.rooms import ROOT

AGENTS = ROOT / "agents"
BROKER = AGENTS / "broker"
MODULES = (BROKER, AGENTS / "engine")
"""The rooms that import private modules."""
PATCHES = (BROKER / "patches", AGENTS / "engine" / "patches")
"""The folders that use private attributes."""
MOST_USES = 25
LIBRARIES = ("aiokafka", "faust", "mode")
PUBLIC = {
    *LIBRARIES,
    "aiokafka.admin",
    "aiokafka.admin.config_resource",
    "aiokafka.admin.new_partitions",
    "aiokafka.errors",
    "aiokafka.structs",
    "faust.types.auth",
}
"""The modules that their documentation tells users to import from."""
ATTRIBUTES = {
    "aiokafka.admin.client:AIOKafkaAdminClient": {"_client", "_send_request"},
    "aiokafka.consumer.consumer:AIOKafkaConsumer": {
        *("_client", "_coordinator", "_fetcher", "_subscription"),
    },
    "aiokafka.consumer.fetcher:Fetcher": {"_records"},
    "aiokafka.consumer.fetcher:FetchResult": {"_partition_records", "_update_position"},
    "aiokafka.consumer.fetcher:PartitionRecords": {
        *("_aborted_producers", "_check_crcs", "_consume_aborted_up_to", "_consumer_record"),
        *("_contains_abort_marker", "_isolation_level", "_records", "_records_iterator", "_tp"),
    },
    "aiokafka.consumer.group_coordinator:GroupCoordinator": {
        *("_client", "_closing", "_pending_exception", "_rejoin_needed_fut", "_send_req"),
    },
    "aiokafka.protocol.group:JoinGroupRequest": {"_member_id"},
    "faust.app.base:App": {"_on_agent_error"},
    "faust.transport.conductor:Conductor": {"_update_indices"},
    "faust.transport.consumer:ThreadDelegateConsumer": {"_thread"},
    "faust.transport.drivers.aiokafka:AIOKafkaConsumerThread": {"_consumer"},
}
"""The private attributes in use, by the class that has them."""


def imports() -> Iterator[tuple[Path, str, str]]:
    """Yield file, module and name of each import from one of the libraries."""
    for path in sorted(AGENTS.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found = [(node.module, alias.name) for alias in node.names]
            elif isinstance(node, ast.Import):
                found = [(alias.name, "") for alias in node.names]
            else:
                continue
            for module, name in found:
                if module.partition(".")[0] in LIBRARIES:
                    yield path.relative_to(ROOT), module, name


def attributes(path: Path) -> Iterator[str]:
    """Yield the private attributes that a file takes of other objects than its own."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            own = isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}
            if not own and not node.attr.startswith("__"):
                yield node.attr


def test_private_modules_are_imported_in_two_rooms_alone():
    outside = [
        f"{path}: {module}"
        for path, module, _ in imports()
        if module not in PUBLIC and not any((ROOT / path).is_relative_to(room) for room in MODULES)
    ]
    assert outside == []


def test_private_attributes_are_used_in_two_folders_alone():
    known = set().union(*ATTRIBUTES.values())
    outside = {
        (str(path.relative_to(ROOT)), name)
        for path in AGENTS.rglob("*.py")
        if not any(path.is_relative_to(folder) for folder in PATCHES)
        for name in attributes(path)
        if name in known
    }
    assert outside == set()


def test_the_table_of_private_attributes_is_complete():
    trees = [ast.parse(path.read_text()) for path in _patches()]
    own = {
        node.attr
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }
    used = {name for path in _patches() for name in attributes(path)}
    known = set().union(*ATTRIBUTES.values())
    # A subclass of a class of theirs also uses what it inherits.
    assert used - own <= known <= used | own


def test_private_attributes_are_few():
    known = set().union(*ATTRIBUTES.values())
    uses = [name for path in _patches() for name in attributes(path) if name in known]
    assert len(uses) <= MOST_USES, sorted(uses)


def _patches() -> list[Path]:
    return sorted(path for folder in PATCHES for path in folder.glob("*.py"))


def test_every_private_name_exists():
    missing = [*_missing_imports(), *_missing_attributes()]
    assert missing == [], "\n".join(missing)


def _missing_imports() -> Iterator[str]:
    for path, module, name in imports():
        try:
            found = importlib.import_module(module)
        except ImportError as error:
            yield f"{path}: {module} cannot be imported: {error}"
            continue
        if name and not hasattr(found, name):
            yield f"{path}: {module} has no {name}"


def _missing_attributes() -> Iterator[str]:
    for place, names in ATTRIBUTES.items():
        module, _, name = place.partition(":")
        try:
            holder = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            yield f"agents/broker: {place} cannot be imported: {error}"
            continue
        files = {Path(sys.modules[one.__module__].__file__ or "") for one in holder.__mro__[:-1]}
        texts = [file.read_text() for file in files if file.suffix == ".py"]
        for attribute in sorted(names):
            if not any(f"self.{attribute}" in text for text in texts) and not hasattr(
                holder, attribute
            ):
                yield f"agents/broker: {place} has no {attribute}"
