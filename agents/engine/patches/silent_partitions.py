"""Keep Faust's client from fetching partitions that are read otherwise.

It fetches all that it is assigned, and logs an error about each partition that has no fetch for
five minutes. Here such partitions are paused, and look as if they had just been fetched for ever:
their time is infinite. Only the state of these partitions in one client is written to.

Seen in Faust 0.15 and aiokafka 0.14. `silence` installs it, after each assignment.
"""

from collections.abc import Set as AbstractSet

from aiokafka import AIOKafkaConsumer, TopicPartition


async def silence(consumer: AIOKafkaConsumer, partitions: AbstractSet[TopicPartition]) -> bool:
    """Silence those of the partitions that are assigned; call it in the consumer's thread."""
    fetcher = consumer._fetcher  # noqa: SLF001 (aiokafka has no way to drop what it fetched)
    # The consumer's own objects: it refuses Faust's equal ones, and `&` may return either.
    for partition in [assigned for assigned in consumer.assignment() if assigned in partitions]:
        consumer.pause(partition)
        subscription = consumer._subscription.subscription  # noqa: SLF001 (what Faust looks at)
        state = subscription.assignment.state_value(partition)
        # Faust logs an error where one of these is None, or the last fetch is five minutes ago.
        state.timestamp, state.highwater = float("inf"), state.highwater or 0
        if fetcher is not None:
            fetcher._records.pop(partition, None)  # noqa: SLF001 (as it does itself, on a seek)
    return True
