"""Kafka's flexible requests: those with tagged fields, of which these have none.

aiokafka 0.14 declares tagged fields as a type and marks the request; 0.15 declares them beside the
schema. This module needs neither, so the requests built on it are the same bytes with both.
"""

from io import BytesIO
from os import SEEK_CUR

from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.api import (
    RequestHeader_v2,
    RequestStruct,
    ResponseHeader_v1,
)
from aiokafka.protocol.types import UnsignedVarInt32


class TaggedFields(AbstractType[dict[int, bytes]]):
    """Tagged fields: none are written, and those read are passed over."""

    @classmethod
    def encode(cls, _value: dict[int, bytes]) -> bytes:
        """Return the bytes of no tagged fields."""
        return UnsignedVarInt32.encode(0)

    @classmethod
    def decode(cls, data: BytesIO) -> dict[int, bytes]:
        """Move past the tagged fields."""
        for _ in range(UnsignedVarInt32.decode(data)):
            UnsignedVarInt32.decode(data)  # the tag
            data.seek(UnsignedVarInt32.decode(data), SEEK_CUR)
        return {}


def request_header(request: RequestStruct, correlation_id: int, client_id: str) -> RequestHeader_v2:
    """Return the header of a flexible request."""
    return RequestHeader_v2(request, correlation_id=correlation_id, client_id=client_id)


def read_response_header(
    _request: RequestStruct, read_buffer: BytesIO | bytes
) -> ResponseHeader_v1:
    """Read the header of a flexible response."""
    return ResponseHeader_v1.decode(read_buffer)
