"""Who is in a consumer group."""

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError


async def count_members(admin: AIOKafkaAdminClient, group_id: str) -> int:
    """Return how many members a group has, 0 if the broker does not say."""
    try:
        responses = await admin.describe_consumer_groups([group_id])
    except KafkaError:
        return 0
    groups = [group for response in responses for group in response.to_object()["groups"]]
    # The embedded broker lists members that have gone, and all of its members without a host.
    return sum(bool(member["client_host"]) for group in groups for member in group["members"])
