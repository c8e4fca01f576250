"""Static membership of a consumer group: what aiokafka leaves out of it.

A process that joins as an instance takes its place. The broker refuses the one that had it before
for good, but only if that one shows its old member id: a process that joins without one takes the
place back, and two of one instance would displace each other for ever. aiokafka forgets the id as
soon as the broker does not know it; here it is kept, and shown once more.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from aiokafka.errors import KafkaError, UnknownMemberIdError
from aiokafka.protocol.group import JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest

_FENCED: Final = 82  # FENCED_INSTANCE_ID, which aiokafka does not know
_ANSWERED_FENCED: Final = (JoinGroupRequest, SyncGroupRequest)


class DisplacedError(RuntimeError):
    """Another process has joined the group as the same instance."""


def keep_place(coordinator: Any, displaced: Callable[[], None]) -> None:
    """Have a coordinator join as the same member again; `displaced`: another process has joined."""
    send, member_id = coordinator._send_req, ""  # noqa: SLF001 (all requests pass here)

    async def send_and_look(request: Any) -> Any:
        nonlocal member_id
        joins = isinstance(request, JoinGroupRequest)
        # aiokafka has forgotten its member id, the broker has not; requests have no public setter.
        if joins and request._member_id == JoinGroupRequest.UNKNOWN_MEMBER_ID:  # noqa: SLF001 (as above)
            request._member_id = member_id  # noqa: SLF001 (as above)
        response = await send(request)
        if joins and response.error_code == UnknownMemberIdError.errno:
            # The session has ended, and nobody has taken the place.
            member_id = JoinGroupRequest.UNKNOWN_MEMBER_ID
        elif joins and response.error_code == 0:
            member_id = response.member_id
        elif isinstance(request, _ANSWERED_FENCED) and response.error_code == _FENCED:
            displaced()
        return response

    coordinator._send_req = send_and_look  # noqa: SLF001 (all requests pass here)


async def give_up_place(coordinator: Any) -> None:
    """Leave the group at once: a static member that only goes keeps its partitions for a session.

    If that fails, they are given to others after the session.
    """
    request = LeaveGroupRequest(coordinator.group_id, coordinator.member_id)
    with suppress(KafkaError):
        await coordinator._send_req(request)  # noqa: SLF001 (aiokafka has no other way)
