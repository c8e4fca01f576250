"""Make a refused member of a group try again, and say why it was refused.

aiokafka's coordinator rests after an error that is not for it to mend, until a call to its consumer
raises that error. Faust never makes such a call: a refused member of its rests for ever, in
silence, whatever is mended.

Seen in aiokafka 0.14 and Faust 0.15. Nothing is installed: call `refused_member` now and then.
"""

from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import GroupCoordinatorNotAvailableError, KafkaError

from ldpstream.agents.broker.refusals import FENCED_INSTANCE_ID, error_code


def coordinator_of(consumer: AIOKafkaConsumer) -> Any:
    """Return what keeps a consumer in its group; None before it has started."""
    return consumer._coordinator  # noqa: SLF001 (nothing public leads to it)


def refused_member(coordinator: Any) -> KafkaError | None:
    """Return why the broker refuses a member, and have its coordinator try again.

    While no broker coordinates the group the error is retriable: that may pass by itself.
    """
    refused: KafkaError | None = coordinator._pending_exception  # noqa: SLF001 (raised by check_errors, at most once)
    # A process that has lost its place must not take it back from the one that has it now.
    if refused is not None and error_code(refused) == FENCED_INSTANCE_ID:
        return refused
    try:
        coordinator.check_errors()
    except KafkaError as error:
        return error
    return GroupCoordinatorNotAvailableError() if coordinator.coordinator_id is None else None
