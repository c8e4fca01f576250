"""Ranges under classical LDP: each report is about one level of a tree (docs/theory.md section 8).

The block is reported exactly. Inside it a level is drawn with a public probability that does not
depend on the value, and the value's node on that level is reported by randomised response or
projective geometry response, whichever has less noise. Least squares combines all levels for ranges
and quantiles. In large domains their error is several times smaller than with any channel for
single values; the error of single values is larger.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.errors import SpecError, within
from ldpstream.mechanisms.base.lazy import locked_cached_property
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.exact.entropy import WORD, Entropy
from ldpstream.mechanisms.families.block.mechanism import BlockSymbols
from ldpstream.mechanisms.families.design.mechanism import blends_of
from ldpstream.mechanisms.families.tree.decoder import TreeDecoder, TreeLayout
from ldpstream.mechanisms.families.tree.hierarchy import Hierarchy, HierarchyLevel
from ldpstream.mechanisms.families.tree.workload import Workload, height, read_workload
from ldpstream.mechanisms.interface.chain import BlockChain, read_larger
from ldpstream.mechanisms.interface.mechanism import Json, Reports
from ldpstream.mechanisms.interface.settings import Settings

_MOST_REPORTS = 1 << 24
_MOST_LEVELS = 1 << 10


@dataclass(frozen=True)
class Tree(BlockSymbols):
    """A tree over the values of each block, in the order of the domain.

    A single block may have `dimensions`, the sizes of several dimensions with values in row-major
    order; otherwise a block is a line. The levels' probabilities minimise the mean error for the
    `workload`: all ranges or prefixes of each block, or a list of boxes of a single block. With
    `levels` they are equal, for distributions that are projected level by level; in several
    dimensions its nodes are squares.

    Raises:
        SpecError: as for every `BlockMechanism`; if epsilon is so small that reports carry no
            information; if there are dimensions with several blocks, or with another number of
            values; if there are more than 2^24 reports or 2^10 levels.
    """

    id: ClassVar[str] = "tree"
    dimensions: tuple[int, ...] = ()
    workload: Workload = "ranges"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dimensions and self.blocks.count > 1:
            raise SpecError("domain.blocks", "one block in several dimensions with tree")
        if self.dimensions and prod(self.dimensions) != self.size:
            raise SpecError("domain", f"dimensions of {self.size} values together")
        levels = prod(height(extent) + 1 for extent in self.extents(1))
        if levels > _MOST_LEVELS:
            raise SpecError("domain", f"fewer dimensions with tree: these have {levels} levels")
        nodes = [1 << sum(map(height, self.extents(size))) for size in self.blocks.sizes.tolist()]
        if sum(nodes) > _MOST_REPORTS:
            raise SpecError("domain", f"fewer values with tree: {self.size} have too many nodes")
        if any(tree.extents and not tree.levels for tree in self.layout.trees):
            raise SpecError("epsilon", "a larger number: at this one reports carry no information")
        if self.outputs > _MOST_REPORTS:
            raise SpecError("domain", f"fewer values with tree: {self.outputs} different reports")

    @classmethod
    def configure(cls, settings: Settings) -> Self:
        """Build the mechanism from a collection's keys; without `blocks` all values are in one."""
        settings.only(cls.id, "epsilon", "workload", "blocks")
        epsilon, domain = settings.read_epsilon(), settings.domain
        if not domain.ordered:
            expected = "an ordered domain with tree (size, sizes, grid or interval), got labels"
            raise SpecError(f"{settings.path}.domain", expected)
        blocks = settings.blocks or Blocks.one(domain.size)
        extents = _extents(domain.shape)
        workload = read_workload(
            settings.keys.get("workload", "ranges"),
            extents,
            f"{settings.path}.workload",
            boxes=blocks.count == 1,
        )
        with within(settings.path):
            return cls(epsilon, blocks, extents if len(extents) > 1 else (), workload)

    def extents(self, size: int) -> tuple[int, ...]:
        """Return the dimensions with 2 values or more of a block of this size."""
        return _extents(self.dimensions or (size,))

    @cached_property
    def layout(self) -> TreeLayout:
        sizes, epsilon = np.unique(self.blocks.sizes).tolist(), budget(self.epsilon)
        trees = {s: Hierarchy.of(epsilon, self.extents(s), self.workload) for s in sizes}
        return TreeLayout(self.blocks, trees)

    @cached_property
    def coordinates(self) -> NDArray[np.int64]:
        shape = self.dimensions or (self.size,)
        return np.stack(np.unravel_index(self.blocks.position, shape))

    def parameters(self) -> Mapping[str, Json]:
        trees: list[Json] = [
            {"shape": list(tree.extents), "levels": [_describe(level) for level in tree.levels]}
            for tree in self.layout.trees
            if tree.extents
        ]
        return {
            "epsilon": float(self.epsilon),
            "trees": trees,
            "blocks": {"count": self.blocks.count, "sha256": self.blocks.digest},
        }

    def row(self, value: int) -> dict[int, Fraction]:
        layout, block = self.layout, int(self.blocks.of_value[value])
        first, tree = int(layout.starts[block]), layout.trees[layout.kinds[block]]
        if not tree.extents:
            return {first: Fraction(1)}
        row: dict[int, Fraction] = {}
        for level in tree.levels:
            design, share = level.channel.design, Fraction(level.probability, WORD)
            start = first + level.start
            row |= dict.fromkeys(range(start, start + design.order), share * design.unlikely)
            (node,) = tree.nodes(level, self.blocks.position[value : value + 1]).tolist()
            for report in level.channel.incidence.supporting(node).tolist():
                row[start + report] = share * design.likely
        return row

    def worst_ratio(self) -> Fraction:
        """Return the largest `likely / unlikely` of the levels.

        A level is drawn independently of the value, so that its probability cancels. Within a level
        every value of a block gives each report one of these two probabilities.
        """
        self.layout.check()
        return max(lv.channel.design.ratio for tree in self.layout.trees for lv in tree.levels)

    def randomise(self, values: NDArray[np.int64], entropy: Entropy) -> Reports:
        """Randomise values, int64 of shape `(n,)` in `0..k-1`, into reports of shape `(n,)`.

        n words draw the levels, and n decide which reports support the node. Then the points are
        drawn, by ascending size of block and level by level.
        """
        words, wanted_words = entropy.words(len(values)), entropy.words(len(values))
        layout, block = self.layout, self.blocks.of_value[values]
        reports, kinds = layout.starts[block], layout.kinds[block]
        place = self.blocks.position[values]
        for kind in np.unique(kinds).tolist():
            tree = layout.trees[kind]
            of_kind = np.flatnonzero(kinds == kind)
            drawn = np.searchsorted(tree.ends, words[of_kind], side="right")
            for number, level in enumerate(tree.levels):
                here = of_kind[drawn == number]
                wanted = wanted_words[here] < np.uint64(level.channel.design.threshold)
                nodes = tree.nodes(level, place[here])
                reports[here] += level.start + level.channel.draw(entropy, nodes, wanted)
        return reports

    def chain(self, epsilon: object) -> "tuple[Tree, BlockChain]":
        """Return the mechanism of a permanent draw, and the chain from it to reports.

        The level stays, like a block; inside it the report stays or becomes a uniform one.
        """
        larger = read_larger(epsilon, self.epsilon)
        permanent = PermanentTree(larger, self.blocks, self.dimensions, self.workload, like=self)
        trees = zip(self.layout.trees, permanent.layout.trees, strict=True)
        pairs = [
            (once.channel.design, held.channel.design)
            for tree, stronger in trees
            for once, held in zip(tree.levels, stronger.levels, strict=True)
        ]
        starts, orders = self.layout.levels()
        return permanent, BlockChain(starts, orders, blends_of(pairs))

    @locked_cached_property
    def decoder(self) -> TreeDecoder:
        return TreeDecoder(self.layout)


@dataclass(frozen=True, kw_only=True)
class PermanentTree(Tree):
    """The mechanism of a permanent draw: a larger budget with the levels of `like`."""

    like: Tree

    @cached_property
    def layout(self) -> TreeLayout:
        trees, larger = self.like.layout.trees, budget(self.epsilon)
        return TreeLayout(self.blocks, {tree.size: tree.stronger(larger) for tree in trees})


def _extents(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(extent for extent in shape if extent > 1)


def _describe(level: HierarchyLevel) -> Json:
    channel = level.channel
    described: dict[str, Json] = {
        "depths": list(level.depths),
        "probability": hex(level.probability),
        "threshold": hex(channel.design.threshold),
    }
    if channel.geometry is not None:
        described |= {"q": channel.geometry.q, "dimension": channel.geometry.dimension}
    return described
