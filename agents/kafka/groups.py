"""The members of workers' consumer groups."""

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from ldpstream.agents.config.shard import is_group


async def worker_groups(admin: AIOKafkaAdminClient, worker_id: str) -> list[str]:
    """Return the groups of an id's workers, of all present and past shards.

    The id's own comes first, and is alone if the broker does not list groups.
    """
    try:
        listed = [str(group[0]) for group in await admin.list_consumer_groups()]
    except KafkaError:
        listed = []
    found = {group for group in listed if is_group(group, worker_id)}
    return [worker_id, *sorted(found - {worker_id})]


async def count_members(admin: AIOKafkaAdminClient, group_id: str) -> int:
    """Return how many members a group has, 0 if the broker does not say."""
    try:
        responses = await admin.describe_consumer_groups([group_id])
    except KafkaError:
        return 0
    groups = [group for response in responses for group in response.to_object()["groups"]]
    # The embedded broker also lists members that have left, and all members without a host.
    return sum(bool(member["client_host"]) for group in groups for member in group["members"])


async def count_workers(admin: AIOKafkaAdminClient, worker_id: str) -> int:
    """Return how many workers with an id run, in all shards, 0 if the broker does not say."""
    return sum([await count_members(admin, one) for one in await worker_groups(admin, worker_id)])
