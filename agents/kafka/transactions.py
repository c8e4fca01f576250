"""Make transactions whose outcome a restarted process can look up.

Each ends with an offset of its own consumer group, committed with it: the offset exists exactly if
the transaction's messages do. Kafka's own client requests such an offset at version 3 at most,
whose answer may be older than a transaction that is just being completed. The request here is
version 7 (Kafka 2.5 and later), with `require_stable`.
"""

import asyncio
from typing import Any, Final, TypeAlias

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError, NoError, for_code
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Int64,
    Schema,
)
from aiokafka.structs import OffsetAndMetadata

from ldpstream.agents.kafka.flexible_requests import (
    TaggedFields,
    read_response_header,
    request_header,
)

_UNSTABLE: Final = 88  # aiokafka has no name for UNSTABLE_OFFSET_COMMIT
_PAUSE_SECONDS: Final = 0.1
_PATIENCE_SECONDS: Final = 120.0


class UnstableOffsetError(KafkaError):
    """A transaction that commits this offset is still being completed."""


async def committed(
    client: AIOKafkaAdminClient, group_id: str, topic: str, partition: int
) -> OffsetAndMetadata | None:
    """Return what a group has committed for a partition, or None.

    Waits while a transaction that commits it is being completed, and for a broker that is not
    ready.

    Raises:
        KafkaError: if the broker does not answer in time, or refuses.
    """
    deadline = asyncio.get_running_loop().time() + _PATIENCE_SECONDS
    while True:
        try:
            return await _ask(client, _OffsetFetchRequest(group_id, topic, partition), group_id)
        except KafkaError as error:
            late = asyncio.get_running_loop().time() > deadline
            if late or not (error.retriable or isinstance(error, UnstableOffsetError)):
                raise
        await asyncio.sleep(_PAUSE_SECONDS)


async def _ask(
    client: AIOKafkaAdminClient, request: "_OffsetFetchRequest", group_id: str
) -> OffsetAndMetadata | None:
    node = await client.find_coordinator(group_id)
    response = await client._send_request(request, node)  # noqa: SLF001 (no public request)
    answer = response.to_object()
    _raise(answer["error_code"])
    ((found,),) = (topic["partitions"] for topic in answer["topics"])
    _raise(found["error_code"])
    return None if found["offset"] < 0 else OffsetAndMetadata(found["offset"], found["metadata"])


def _raise(error_code: int) -> None:
    if error_code == _UNSTABLE:
        raise UnstableOffsetError
    error = for_code(error_code)
    if error is not NoError:
        raise error


class _OffsetFetchResponse(Response):
    API_KEY = 9
    API_VERSION = 7
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            CompactArray(
                ("topic", CompactString("utf-8")),
                (
                    "partitions",
                    CompactArray(
                        ("partition", Int32),
                        ("offset", Int64),
                        ("leader_epoch", Int32),
                        ("metadata", CompactString("utf-8")),
                        ("error_code", Int16),
                        ("tags", TaggedFields),
                    ),
                ),
                ("tags", TaggedFields),
            ),
        ),
        ("error_code", Int16),
        ("tags", TaggedFields),
    )


class _OffsetFetchRequestV7(RequestStruct):
    API_KEY = 9
    API_VERSION = 7
    RESPONSE_TYPE = _OffsetFetchResponse
    build_request_header = request_header
    parse_response_header = read_response_header
    SCHEMA = Schema(
        ("consumer_group", CompactString("utf-8")),
        (
            "topics",
            CompactArray(
                ("topic", CompactString("utf-8")),
                ("partitions", CompactArray(Int32)),
                ("tags", TaggedFields),
            ),
        ),
        ("require_stable", Boolean),
        ("tags", TaggedFields),
    )


_Struct: TypeAlias = _OffsetFetchRequestV7


class _OffsetFetchRequest(Request[_Struct]):
    API_KEY = 9

    def __init__(self, group_id: str, topic: str, partition: int) -> None:
        self._fields: tuple[Any, ...] = (group_id, [(topic, [partition], {})], True, {})

    def build(self, request_struct_class: type[_Struct]) -> _Struct:
        return request_struct_class(*self._fields)
