"""Ranges under classical LDP: each report is about one level of a tree (docs/theory.md section 8).

The block is reported exactly. Inside it a level is drawn with a public probability that does not
depend on the value, and the value's node on that level is reported by randomised response or
projective geometry response, whichever has less noise. Least squares combines all levels for ranges
and quantiles. In large domains their error is several times smaller than with any channel for
single values; the error of single values is larger.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Floats, Indices, Integers
from ldpstream.mechanisms.base.errors import SpecError, within
from ldpstream.mechanisms.base.lazy import locked_cached_property
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.exact.entropy import WORD, Entropy
from ldpstream.mechanisms.families.block.decoder import DisclosedBlocks, ReportLayout
from ldpstream.mechanisms.families.block.mechanism import BlockSymbols
from ldpstream.mechanisms.families.design.mechanism import blends_of
from ldpstream.mechanisms.families.tree.hierarchy import Hierarchy, HierarchyLevel
from ldpstream.mechanisms.families.tree.hierarchy_decoder import HierarchyDecoder, Singles
from ldpstream.mechanisms.families.tree.workload import Workload, height, read_workload
from ldpstream.mechanisms.interface.chain import BlockChain, read_larger
from ldpstream.mechanisms.interface.decoder import Decoded, Statistic
from ldpstream.mechanisms.interface.mechanism import Json, Reports
from ldpstream.mechanisms.interface.settings import Settings

_MOST_REPORTS = 1 << 24
_MOST_LEVELS = 1 << 10


class TreeLayout(ReportLayout):
    """`trees` are the different trees, by ascending size of block; `kinds[j]` is block j's."""

    def __init__(self, blocks: Blocks, of_size: Mapping[int, Hierarchy]) -> None:
        sizes = sorted(of_size)
        self.trees = tuple(of_size[size] for size in sizes)
        self.kinds: Indices = np.searchsorted(np.array(sizes), blocks.sizes)
        orders = np.array([t.order for t in self.trees], dtype=np.int64)
        super().__init__(blocks, orders[self.kinds])

    def levels(self) -> tuple[Indices, Indices]:
        """Return the first report and the number of reports of each level of each block."""
        starts, orders = [], []
        for first, kind in zip(self.starts.tolist(), self.kinds.tolist(), strict=True):
            levels = [(lv.start, lv.channel.design.order) for lv in self.trees[kind].levels]
            for start, reports in levels or [(0, 1)]:
                starts.append(first + start)
                orders.append(reports)
        return np.array(starts, dtype=np.int64), np.array(orders, dtype=np.int64)

    def check(self) -> None:
        """Check what the proof by structure assumes of the tables."""
        for tree in self.trees:
            tree.check()
        sizes = np.array([tree.size for tree in self.trees])
        if not (self.disjoint and np.all(sizes[self.kinds] == self.blocks.sizes)):
            raise ValueError("the tables of the trees are not what their proof assumes")


class TreeDecoder(DisclosedBlocks):
    """The values of a block are decoded by its tree, from the reports of the block alone."""

    def __init__(self, layout: TreeLayout) -> None:
        self._layout = self.reports = layout
        self._decoders = [HierarchyDecoder(tree) for tree in layout.trees]
        # In several dimensions, a pyramid holds each value once for each level of the others.
        self.scratch = 8.0
        blocks = layout.blocks
        self._by_block: Indices = np.argsort(blocks.of_value, kind="stable")
        self._first: Indices = np.cumsum(blocks.sizes) - blocks.sizes

    def _batches(self) -> Iterator[tuple[HierarchyDecoder, Indices, Indices]]:
        """Yield each tree with the values `(g, m)` and the reports `(g, order)` of its blocks."""
        layout = self._layout
        for kind, (decoder, tree) in enumerate(zip(self._decoders, layout.trees, strict=True)):
            of_kind = np.flatnonzero(layout.kinds == kind)
            values = self._by_block[self._first[of_kind][:, None] + np.arange(max(1, tree.size))]
            yield decoder, values, layout.starts[of_kind][:, None] + np.arange(tree.order)

    def totals(self, statistic: Statistic) -> Floats:
        out = np.empty(self._layout.blocks.size)
        for decoder, values, reports in self._batches():
            out[values] = decoder.totals(statistic[reports])
        return out

    def moments(self, decoded: Decoded, at: slice | Integers) -> Floats:
        """Return the sums of the squares, approximately for trees of some 1,500 values or more."""
        if self._layout.blocks.count == 1:
            statistic, totals = decoded.statistic[None], decoded.totals[None]
            (moments,) = self._decoders[0].second_moments(statistic, totals, at)
            return np.asarray(moments)
        out = np.empty(self._layout.blocks.size)
        for decoder, values, reports in self._batches():
            counts, totals = decoded.statistic[reports], decoded.totals[values]
            out[values] = decoder.second_moments(counts, totals, slice(None))
        return out[at]

    def expect(self, function: Floats) -> Floats:
        (sums,) = self.expect_each(np.asarray(function, dtype=np.float64)[None])
        return np.asarray(sums)

    def expect_each(self, functions: Floats) -> Floats:
        out = np.empty((len(functions), self._layout.blocks.size))
        for decoder, values, reports in self._batches():
            rows = functions[:, reports]
            sums = decoder.expect(rows.reshape(-1, reports.shape[1]))
            out[:, values] = sums.reshape(-1, *values.shape)
        return out

    def decode(self, weights: Floats) -> Floats:
        (decoded,) = self.decode_each(np.asarray(weights, dtype=np.float64)[None])
        return np.asarray(decoded)

    def decode_each(self, weights: Floats) -> Floats:
        decoded = np.empty((len(weights), self._layout.outputs))
        for decoder, values, reports in self._batches():
            rows = weights[:, values]
            products = decoder.decode(rows.reshape(-1, values.shape[1]))
            decoded[:, reports] = products.reshape(-1, *reports.shape)
        return decoded

    def extremes(self) -> tuple[Floats, Floats]:
        """Return the extremes of the values' decoders, which are 0 at other blocks' reports."""
        low, high = self._ends(lambda of: (of.least, of.largest))
        if self._layout.blocks.count == 1:
            return low, high
        return np.minimum(low, 0.0), np.maximum(high, 0.0)

    def noise_extremes(self) -> tuple[Floats, Floats]:
        """Return the extremes of the noise of a user of the block, or bounds for large trees."""
        return self._ends(lambda of: (of.quietest, of.noisiest))

    def _ends(self, pair: Callable[[Singles], tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
        low, high = np.empty((2, self._layout.blocks.size))
        for decoder, values, _ in self._batches():
            rows = decoder.singles.rows
            low[values], high[values] = (end[rows] for end in pair(decoder.singles))
        return low, high


@dataclass(frozen=True)
class Tree(BlockSymbols):
    """A tree over the values of each block, in the order of the domain.

    With `dimensions`, the sizes of several dimensions with values in row-major order, blocks are
    boxes in them, and those of one size have one shape; otherwise a block is a line. The levels'
    probabilities minimise the mean error for the `workload`: all ranges or prefixes of each block,
    or a list of boxes of a single block. With `levels` they are equal, for distributions that are
    projected level by level; in several dimensions its nodes are squares.

    Raises:
        SpecError: as for every `BlockMechanism`; if epsilon is so small that reports carry no
            information; if there are dimensions with another number of values, or blocks that are
            no boxes in them or have several shapes of one size; if there are more than 2^24 reports
            or 2^10 levels.
    """

    id: ClassVar[str] = "tree"
    dimensions: tuple[int, ...] = ()
    workload: Workload = "ranges"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dimensions and prod(self.dimensions) != self.size:
            raise SpecError("domain", f"dimensions of {self.size} values together")
        every = map(self.extents, np.unique(self.blocks.sizes).tolist())
        levels = max(prod(height(extent) + 1 for extent in extents) for extents in every)
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
        return self._shapes[size] if self.dimensions else _extents((size,))

    @cached_property
    def _shapes(self) -> dict[int, tuple[int, ...]]:
        """The dimensions of 2 values or more of blocks, by their size."""
        lengths = self._corners[1] - self._corners[0] + 1
        shapes: dict[int, tuple[int, ...]] = {}
        for size, shape in zip(self.blocks.sizes.tolist(), lengths.tolist(), strict=True):
            if prod(shape) != size:
                raise SpecError("domain.blocks", "boxes of the domain with tree, such as [5, 7]")
            known = shapes.setdefault(size, _extents(tuple(shape)))
            if known != _extents(tuple(shape)):
                raise SpecError(
                    "domain.blocks",
                    f"blocks of one shape for each number of values with tree, got {size} values "
                    f"as {' x '.join(map(str, known))} and as {' x '.join(map(str, shape))}",
                )
        return shapes

    @cached_property
    def _corners(self) -> NDArray[np.int64]:
        """The first and the last coordinates of each block, `(2, blocks, dimensions)`."""
        places = np.stack(np.unravel_index(np.arange(self.size), self.dimensions), axis=1)
        ranking = np.argsort(self.blocks.of_value, kind="stable")
        starts = np.cumsum(self.blocks.sizes) - self.blocks.sizes
        ends = (np.minimum, np.maximum)
        return np.stack([end.reduceat(places[ranking], starts, axis=0) for end in ends])

    @cached_property
    def layout(self) -> TreeLayout:
        sizes, epsilon = np.unique(self.blocks.sizes).tolist(), budget(self.epsilon)
        trees = {s: Hierarchy.of(epsilon, self.extents(s), self.workload) for s in sizes}
        return TreeLayout(self.blocks, trees)

    @cached_property
    def coordinates(self) -> NDArray[np.int64]:
        if not self.dimensions:
            return self.blocks.position[None]
        places: NDArray[np.int64] = np.stack(
            np.unravel_index(np.arange(self.size), self.dimensions)
        )
        first: NDArray[np.int64] = self._corners[0][self.blocks.of_value].T
        return np.subtract(places, first)

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
                supporting = wanted_words[here] < np.uint64(level.channel.design.threshold)
                nodes = tree.nodes(level, place[here])
                reports[here] += level.start + level.channel.draw(entropy, nodes, supporting)
        return reports

    def chain(self, epsilon: object) -> "tuple[Tree, BlockChain]":
        """Return the mechanism of a permanent draw, and the chain from it to reports.

        The level stays, like a block; inside it the report stays or becomes a uniform one.
        """
        larger = read_larger(epsilon, self.epsilon)
        permanent = PermanentTree(larger, self.blocks, self.dimensions, self.workload, like=self)
        trees = zip(self.layout.trees, permanent.layout.trees, strict=True)
        pairs = [
            (single.channel.design, permanent_level.channel.design)
            for tree, stronger in trees
            for single, permanent_level in zip(tree.levels, stronger.levels, strict=True)
        ]
        blends = blends_of(pairs)
        # On every level decoders have the mean of the weights.
        shared = max((blend.shared_moment for blend in blends.values()), default=0.0)
        return permanent, BlockChain(*self.layout.levels(), blends, shared)

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
