"""Treat a member that waits for a group's other members as what it is: neither in nor out.

aiokafka commits for such a member, whose generation is an old one, and lets it leave only after the
join. Seen in aiokafka 0.14. Nothing is installed: ask `is_joining` before a commit, and run
`leave_while_joining` while the coordinator closes.
"""

import asyncio
from contextlib import suppress
from typing import Any

from aiokafka.errors import KafkaError
from aiokafka.protocol.group import LeaveGroupRequest


def is_joining(coordinator: Any) -> bool:
    """Return whether a member is about to join its group, or waits for the others to join.

    It must not commit then. A broker answers the requests of a connection in turn, so it would
    look at the commit after the join, and refuse it for its old generation. aiokafka would take
    that for the loss of its place, and join as a new member: the group would wait a whole session
    for the one that nobody is any more.
    """
    return bool(coordinator._rejoin_needed_fut.done())  # noqa: SLF001 (set until the group has assigned)


async def leave_while_joining(coordinator: Any) -> None:
    """Leave the group once the coordinator closes, if it waits for a join.

    aiokafka leaves after the join, for which the broker waits for all other members, and for the
    session of one that was killed. A process that ends earlier would stay a member, too.
    """
    await asyncio.wait([coordinator._closing])  # noqa: SLF001 (set by close)
    broker, member_id = coordinator.coordinator_id, coordinator.member_id
    if is_joining(coordinator) and broker is not None and member_id:
        request = LeaveGroupRequest(coordinator.group_id, member_id)
        # Not by the connection on which the broker still has the join to answer.
        with suppress(KafkaError):
            await coordinator._client.send(broker, request)  # noqa: SLF001 (nothing public leads to it)
