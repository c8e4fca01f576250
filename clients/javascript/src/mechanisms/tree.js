// Trees over the values of a block: a level is drawn with a public probability, and the value's node on
// it is reported by randomised response or projective geometry response.

import { readBlocks, startsOf } from "../blocks.js";
import { blockChain } from "../chains.js";
import { sizeOf } from "../domain.js";
import { bitLength, uniformBelow } from "../entropy.js";
import { Geometry } from "./geometry.js";
import { drawPoints } from "./projective_geometry.js";
import { symbols } from "./symbols.js";

export async function tree(parameters, size, tables) {
  const blocks = await readBlocks(size, parameters.blocks, tables.blocks);
  const trees = new Map(parameters.trees.map(readTree).map((one) => [one.size, one]));
  const orders = blocks.sizes.map((count) => (count === 1 ? 1 : trees.get(count).order));
  const starts = startsOf(orders);
  const outputs = orders.reduce((sum, order) => sum + order, 0);
  return symbols(outputs, (values, entropy) => {
    const of = values.map((value) => blocks.ofValue[value]);
    const words = entropy.words(values.length);
    const chances = entropy.words(values.length);
    const reports = of.map((block) => starts[block]);
    for (const [count, { levels }] of [...trees].sort((a, b) => a[0] - b[0])) {
      const here = of.flatMap((block, i) => (blocks.sizes[block] === count ? [i] : []));
      const drawn = here.map((i) => levels.findIndex(({ end }) => words[i] < end));
      levels.forEach((level, number) => {
        const chosen = here.filter((_, at) => drawn[at] === number);
        const nodes = chosen.map((i) => level.node(blocks.place[values[i]]));
        const wanted = chosen.map((i) => chances[i] < level.threshold);
        level.draw(entropy, nodes, wanted).forEach((point, at) => {
          reports[chosen[at]] += level.start + point;
        });
      });
    }
    return reports;
  }, blockChain(levelsOf(blocks, trees, starts)));
}

// The first report and the number of reports of each level of each block.
function levelsOf(blocks, trees, starts) {
  const alone = [{ start: 0, order: 1 }];
  const levels = blocks.sizes.flatMap((count, block) =>
    (count === 1 ? alone : trees.get(count).levels).map(({ start, order }) => [starts[block] + start, order]),
  );
  return { starts: levels.map(([start]) => start), orders: levels.map(([, order]) => order) };
}

function readTree({ shape, levels: given }) {
  const heights = shape.map((extent) => bitLength(extent - 1));
  let [start, end] = [0, 0n];
  const levels = given.map(({ depths, probability, threshold, q, dimension }) => {
    const nodes = 2 ** depths.reduce((sum, depth) => sum + depth, 0);
    const geometry = q === undefined ? null : new Geometry(q, dimension);
    end += BigInt(probability);
    const order = geometry === null ? nodes : geometry.points;
    const level = {
      start,
      order,
      end,
      threshold: BigInt(threshold),
      node: (place) => nodeOf(place, shape, heights, depths),
      draw: (entropy, own, wanted) => drawNodes({ entropy, nodes, geometry, own, wanted }),
    };
    start += order;
    return level;
  });
  return { size: sizeOf({ shape }), order: start, levels };
}

// The node of a place, both in row-major order.
function nodeOf(place, shape, heights, depths) {
  let [node, rest, stride] = [0, place, 1];
  for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
    const width = 2 ** (heights[axis] - depths[axis]);
    node += Math.floor((rest % shape[axis]) / width) * stride;
    rest = Math.floor(rest / shape[axis]);
    stride *= 2 ** depths[axis];
  }
  return node;
}

// A report for each node: the node itself, or a point orthogonal to it, if wanted; else another one.
function drawNodes({ entropy, nodes, geometry, own, wanted }) {
  const points = [...own];
  if (geometry !== null) {
    drawPoints(geometry, entropy, { here: own.map((_, i) => i), places: own, wanted }, points);
    return points;
  }
  const others = own.flatMap((_, i) => (wanted[i] ? [] : [i]));
  uniformBelow(entropy, nodes - 1, others.length).forEach((drawn, at) => {
    const i = others[at];
    points[i] = drawn + (drawn >= own[i] ? 1 : 0);
  });
  return points;
}
