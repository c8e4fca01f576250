"""One Apache Kafka for all processes of tests of a run: a virtual machine takes long to warm up."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN, flock
from pathlib import Path
from typing import Any, Final

from tests.brokers import Broker, broker

_STEP_SECONDS: Final = 0.2


@contextmanager
def shared_kafka(folder: Path) -> Iterator[Broker]:
    """Run a Kafka, or use the one that another process runs by the same folder.

    The process that runs it waits at the end of the block until no other uses it. The system
    releases the locks of a process that is killed.
    """
    address = folder / "kafka"
    with ExitStack() as stack:
        changing, using = (
            stack.enter_context((folder / name).open("w")) for name in ("changing", "using")
        )
        with _locked(changing):
            if address.exists():
                flock(using, LOCK_SH)
                found = Broker("kafka", address.read_text())
                own = False
            else:
                found = stack.enter_context(broker("kafka"))
                address.write_text(found.bootstrap)
                own = True
        yield found
        if own:
            _give_up(changing, using, address)


def _give_up(changing: Any, using: Any, address: Path) -> None:
    """Wait until nobody else uses the broker, and withdraw its address."""
    while True:
        with _locked(changing):
            try:
                flock(using, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                pass
            else:
                address.unlink()
                return
        time.sleep(_STEP_SECONDS)


@contextmanager
def _locked(file: Any) -> Iterator[None]:
    flock(file, LOCK_EX)
    try:
        yield
    finally:
        flock(file, LOCK_UN)
