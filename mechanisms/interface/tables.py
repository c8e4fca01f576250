"""Tables of a device document, of which the parameters hold only a digest (docs/wire.md)."""

from typing import Final

from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.policies.graph import GraphPolicy
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
from ldpstream.mechanisms.policies.policy import BlockPolicy, Policy

MAX_TABLE_BYTES: Final = 1 << 20
"""Longer texts, and strategies that take more bytes as integers, are left out of documents."""


def block_tables(blocks: Blocks) -> dict[str, Json]:
    """Return the block of every value as runs of neighbours; nothing if there is one block."""
    if blocks.count == 1:
        return {}
    return {"blocks": [[block, length] for block, length in blocks.runs()]}


def text_table(name: str, content: bytes) -> dict[str, Json]:
    """Return canonical JSON as a text, so that a device can hash its bytes unchanged."""
    return {name: content.decode("ascii")} if len(content) <= MAX_TABLE_BYTES else {}


def policy_tables(policy: Policy) -> dict[str, Json]:
    """Return blocks, edges or budgets; nothing for a policy that its description states in full."""
    if isinstance(policy, BlockPolicy):
        return block_tables(policy.blocks)
    if isinstance(policy, GraphPolicy | MatrixPolicy):
        return text_table("policy", policy.content)
    return {}
