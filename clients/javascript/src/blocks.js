// A partition of the values 0..k-1 into blocks.

import { SpecError } from "./errors.js";
import { sha256OfNumbers } from "./hash.js";

// Returns the block of each value, its place there, and the size of each block. `parameters` are the
// mechanism's `blocks`; `runs` is the table of the device document, absent if there is one block.
export async function readBlocks(size, parameters, runs) {
  const ofValue = runs === undefined ? new Array(size).fill(0) : expand(runs, size);
  if ((await sha256OfNumbers(ofValue)) !== parameters.sha256) {
    throw new SpecError("tables.blocks", "the blocks whose SHA-256 the spec holds");
  }
  return blocksOf(ofValue, parameters.count);
}

// Returns the same of the blocks of values as they are.
export function blocksOf(ofValue, count) {
  const sizes = new Array(count).fill(0);
  const place = ofValue.map((block) => {
    sizes[block] += 1;
    return sizes[block] - 1;
  });
  return { ofValue, place, sizes };
}

function expand(runs, size) {
  const ofValue = [];
  for (const [block, length] of runs) {
    if (!Number.isInteger(length) || length < 1 || ofValue.length + length > size) break;
    for (let i = 0; i < length; i += 1) ofValue.push(block);
  }
  if (ofValue.length !== size) {
    throw new SpecError("tables.blocks", `runs [block, length] of ${size} values together`);
  }
  return ofValue;
}

// The threshold of each block, by its size. A value alone in its block needs none, but draws its words
// like all others.
export function thresholdsOf({ sizes }, designs) {
  return sizes.map((count) => (count === 1 ? 0n : BigInt(designs.get(count).threshold)));
}

// The first output of each block; block j has `orders[j]` outputs, one block after the other.
export function startsOf(orders) {
  let next = 0;
  return orders.map((order) => {
    next += order;
    return next - order;
  });
}

// Parameters by size of block.
export function bySize(list) {
  return new Map(list.map((entry) => [entry.size, entry]));
}
