// Ordered values with two-sided geometric noise, clamped (draws: docs/vectors.md).

import { readKeep } from "../chains.js";
import { split } from "../domain.js";
import { bernoulliRationals } from "../entropy.js";
import { SpecError } from "../errors.js";
import { symbols } from "./symbols.js";
import { TwoSided } from "./two_sided.js";

export function l1Geometric(parameters, size) {
  const extents = parameters.shape.filter((extent) => extent > 1);
  const noise = new TwoSided([BigInt(parameters.threshold)], Math.max(...extents));
  return symbols(size, (values, entropy) => {
    const coordinates = values.flatMap((value) => split(value, extents));
    const last = values.flatMap(() => extents.map((extent) => extent - 1));
    const moved = noise.move(entropy, coordinates, last, new Array(last.length).fill(0));
    return values.map((_, i) => joined(moved.slice(i * extents.length), extents));
  }, { form: JSON.stringify(extents), again: (keep) => again(readBoth(keep), extents, noise) });
}

// Coordinates stay, or get the noise of a report.
function again([inside, end], extents, noise) {
  const last = extents.map((extent) => extent - 1);
  return (report, entropy) => {
    const own = split(report, extents);
    const kept = own.map((x, axis) => (x === 0 || x === last[axis] ? end : inside));
    const stays = bernoulliRationals(entropy, kept);
    const moved = noise.move(entropy, own, last, new Array(last.length).fill(0));
    return joined(own.map((x, axis) => (stays[axis] ? x : moved[axis])), extents);
  };
}

function readBoth(keep) {
  if (keep.length !== 2) throw new SpecError("hold.keep", "two probabilities: inside, and at ends");
  return keep.map(readKeep);
}

function joined(coordinates, extents) {
  return extents.reduce((number, extent, axis) => number * extent + coordinates[axis], 0);
}
