"""Keep the place of a static member in its group, and give it up.

aiokafka lacks part of *static membership*. A process that joins as an instance takes over that
instance's place. The broker then refuses the process that had it before, but only if that one sends
its old member id: without an id it would take the place back, and two processes with one instance
would displace each other for ever. aiokafka forgets the id as soon as the broker does not know it;
here it is kept, and sent once more (`keep_place`).

Seen in aiokafka 0.14. `keep_place` installs it on one coordinator, once its consumer has started.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from aiokafka.errors import KafkaError, UnknownMemberIdError
from aiokafka.protocol.group import JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest

from ldpstream.agents.broker.refusals import FENCED_INSTANCE_ID

_ANSWERED_FENCED: Final = (JoinGroupRequest, SyncGroupRequest)


class DisplacedError(RuntimeError):
    """Another process has joined the group as the same instance."""

    def __init__(self, group_id: str, instance: str) -> None:
        super().__init__(
            f"another process has joined the group {group_id} as the instance {instance}: each "
            "worker needs one of its own"
        )


def keep_place(coordinator: Any, displaced: Callable[[], None]) -> None:
    """Make a coordinator rejoin as the same member; call `displaced` if another process joined."""
    send, member_id = coordinator._send_req, ""  # noqa: SLF001 (all requests pass here)

    async def send_with_member_id(request: Any) -> Any:
        nonlocal member_id
        joins = isinstance(request, JoinGroupRequest)
        # aiokafka has forgotten the member id, but the broker has not; requests have no setter.
        if joins and request._member_id == JoinGroupRequest.UNKNOWN_MEMBER_ID:  # noqa: SLF001 (as above)
            request._member_id = member_id  # noqa: SLF001 (as above)
        response = await send(request)
        if joins and response.error_code == UnknownMemberIdError.errno:
            # The session has expired, and nobody has taken the place.
            member_id = JoinGroupRequest.UNKNOWN_MEMBER_ID
        elif joins and response.error_code == 0:
            member_id = response.member_id
        elif isinstance(request, _ANSWERED_FENCED) and response.error_code == FENCED_INSTANCE_ID:
            displaced()
        return response

    coordinator._send_req = send_with_member_id  # noqa: SLF001 (all requests pass here)


async def give_up_place(coordinator: Any) -> None:
    """Leave the group at once: a static member that just stops keeps its partitions for a session.

    If that fails, others get them after the session.
    """
    request = LeaveGroupRequest(coordinator.group_id, coordinator.member_id)
    with suppress(KafkaError):
        await coordinator._send_req(request)  # noqa: SLF001 (aiokafka has no other way)
