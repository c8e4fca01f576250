// Projective geometry response inside blocks: an orthogonal point with T / 2^64, else another one.

import { blockChain } from "../chains.js";
import { bySize, readBlocks, startsOf, thresholdsOf } from "../blocks.js";
import { bernoulliEach, uniformBelow } from "../entropy.js";
import { Geometry } from "./geometry.js";
import { symbols } from "./symbols.js";

export async function projectiveGeometry(parameters, size, tables) {
  const blocks = await readBlocks(size, parameters.blocks, tables.blocks);
  const spaces = bySize(parameters.spaces);
  const geometries = new Map(
    [...spaces].map(([count, space]) => [count, new Geometry(space.q, space.dimension)]),
  );
  const orders = blocks.sizes.map((count) => (count === 1 ? 1 : geometries.get(count).points));
  const starts = startsOf(orders);
  const outputs = orders.reduce((sum, order) => sum + order, 0);
  const thresholds = thresholdsOf(blocks, spaces);
  return symbols(outputs, (values, entropy) => {
    const of = values.map((value) => blocks.ofValue[value]);
    const wanted = bernoulliEach(
      entropy,
      of.map((block) => thresholds[block]),
    );
    const points = new Array(values.length).fill(0);
    for (const [count, geometry] of [...geometries].sort((a, b) => a[0] - b[0])) {
      const here = of.flatMap((block, i) => (blocks.sizes[block] === count ? [i] : []));
      const places = values.map((value) => blocks.place[value]);
      drawPoints(geometry, entropy, { here, places, wanted }, points);
    }
    return points.map((point, i) => starts[of[i]] + point);
  }, blockChain({ starts, orders }));
}

// Fills in the points of the values at the places `here`: orthogonal ones by their number among
// them, others by rejection, round by round.
export function drawPoints(geometry, entropy, { here, places, wanted }, points) {
  const inside = here.filter((i) => wanted[i]);
  uniformBelow(entropy, geometry.inside, inside.length).forEach((lower, at) => {
    points[inside[at]] = geometry.complete(places[inside[at]], lower);
  });
  let left = here.filter((i) => !wanted[i]);
  while (left.length > 0) {
    const drawn = uniformBelow(entropy, geometry.points, left.length);
    left.forEach((i, at) => {
      points[i] = drawn[at];
    });
    left = left.filter((i) => geometry.isOrthogonal(places[i], points[i]));
  }
}
