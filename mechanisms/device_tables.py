"""Tables of a device document: what parameters hold by digest only (docs/wire.md)."""

from typing import Final

from ldpstream.mechanisms.blocks import Blocks
from ldpstream.mechanisms.canonical import Json
from ldpstream.mechanisms.graph_policy import GraphPolicy
from ldpstream.mechanisms.matrix_policy import MatrixPolicy
from ldpstream.mechanisms.matrix_strategy import STRATEGIES, Strategy
from ldpstream.mechanisms.policy import BlockPolicy, Policy

MAX_TABLE_BYTES: Final = 1 << 20
"""Longer texts, and strategies of more integers than this holds, are in no document."""
_INTEGER_BYTES: Final = 4


def block_tables(blocks: Blocks) -> dict[str, Json]:
    """Return the block of every value, as runs of neighbours, where there are several."""
    if blocks.count == 1:
        return {}
    return {"blocks": [[block, length] for block, length in blocks.runs()]}


def text_table(name: str, content: bytes) -> dict[str, Json]:
    """Return canonical JSON as a text, so that its bytes can be hashed as they are."""
    return {name: content.decode("ascii")} if len(content) <= MAX_TABLE_BYTES else {}


def strategy_tables(strategy: Strategy) -> dict[str, Json]:
    """Return the rows of a strategy that is none of the built-in ones."""
    if strategy.name in STRATEGIES or strategy.entries.size * _INTEGER_BYTES > MAX_TABLE_BYTES:
        return {}
    return {"strategy": strategy.entries.tolist()}


def policy_tables(policy: Policy) -> dict[str, Json]:
    """Return blocks, edges or budgets; nothing of a policy that its description says in full."""
    if isinstance(policy, BlockPolicy):
        return block_tables(policy.blocks)
    if isinstance(policy, GraphPolicy | MatrixPolicy):
        return text_table("policy", policy.content)
    return {}
