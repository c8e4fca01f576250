// Ordered values moved by two-sided geometric noise, and clamped; the draws are in docs/wire.md.

import { symbols } from "./symbols.js";
import { TwoSided } from "./two_sided.js";

export function l1Geometric(parameters, size) {
  const extents = parameters.shape.filter((extent) => extent > 1);
  const noise = new TwoSided([BigInt(parameters.threshold)], Math.max(...extents));
  return symbols(size, (values, entropy) => {
    const coordinates = values.flatMap((value) => split(value, extents));
    const last = values.flatMap(() => extents.map((extent) => extent - 1));
    const moved = noise.move(entropy, coordinates, last, new Array(last.length).fill(0));
    return values.map((_, i) =>
      extents.reduce((number, extent, axis) => number * extent + moved[i * extents.length + axis], 0),
    );
  });
}

function split(value, extents) {
  const coordinates = new Array(extents.length);
  let rest = value;
  for (let axis = extents.length - 1; axis >= 0; axis -= 1) {
    coordinates[axis] = rest % extents[axis];
    rest = Math.floor(rest / extents[axis]);
  }
  return coordinates;
}
