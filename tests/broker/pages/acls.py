"""Permissions of test users, given by the very commands that the pages show."""

import argparse
import asyncio
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.admin import CreateAclsRequest, DescribeAclsRequest

from tests.pages import blocks

_OPERATIONS = {"read": 3, "write": 4, "create": 5, "delete": 6, "alter": 7, "describe": 8}
_OPERATIONS |= {"describeconfigs": 10}
_PATTERNS = {"literal": 3, "prefixed": 4}
_TOPIC, _GROUP = 2, 3
_ALLOW = 3


async def grant(client: AIOKafkaAdminClient, commands: str) -> None:
    """Do what lines of `kafka-acls.sh ... --add ...` say, and wait until it is in force."""
    for line in commands.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            for entry in _entries(words):
                response: Any = await client._send_request(CreateAclsRequest(**entry))
                ((code, message),) = response.creation_responses
                assert code == 0, message
                await _in_force(client, entry)


def documented(page: str, heading: str, names: Mapping[str, str]) -> str:
    """Return the commands that a page shows below a heading, with our names in place of its own."""
    (commands,) = [one.code for one in blocks(page) if one.heading == heading]
    for theirs, ours in names.items():
        assert theirs in commands
        commands = commands.replace(theirs, ours)
    return commands


async def _in_force(client: AIOKafkaAdminClient, entry: dict[str, Any]) -> None:
    """Wait until the broker has what its controller already stores."""
    while True:
        response: Any = await client._send_request(DescribeAclsRequest(**entry))
        if response.resources:
            return
        await asyncio.sleep(0.02)


def _entries(words: list[str]) -> Iterator[dict[str, Any]]:
    assert words.pop(0) == "kafka-acls.sh"
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--add", action="store_true", required=True)
    parser.add_argument("--allow-principal", required=True)
    parser.add_argument("--operation", action="append", required=True)
    parser.add_argument("--resource-pattern-type", default="literal")
    parser.add_argument("--topic", action="append", default=[])
    parser.add_argument("--group", action="append", default=[])
    given = parser.parse_args(words)
    names = [(_TOPIC, name) for name in given.topic] + [(_GROUP, name) for name in given.group]
    for kind, name in names:
        for operation in given.operation:
            yield {
                "resource_type": kind,
                "resource_name": name,
                "resource_pattern_type_filter": _PATTERNS[given.resource_pattern_type],
                "principal": given.allow_principal,
                "host": "*",
                "operation": _OPERATIONS[operation.lower()],
                "permission_type": _ALLOW,
            }
