// The strategies of linear counting: rows of integers over the values (docs/wire.md, "matrix").

import { SpecError } from "../errors.js";
import { sha256OfNumbers } from "../hash.js";

const MAX_VALUES = 2048;

const BUILT_IN = new Map([
  ["prefix", prefix],
  ["identity", identity],
  ["haar", haar],
  ["hierarchical", hierarchical],
]);

// Returns the rows, each an array of `size` integers.
export async function readStrategy({ name, sha256 }, size, table) {
  if (size > MAX_VALUES) throw new SpecError("domain", `at most ${MAX_VALUES} values with a strategy`);
  if (BUILT_IN.has(name)) return BUILT_IN.get(name)(size);
  const rows = table ?? [];
  const whole = rows.every((row) => row.length === size && row.every(Number.isInteger));
  if (!whole || (await sha256OfNumbers(rows.flat())) !== sha256) {
    throw new SpecError("tables.strategy", "the rows whose SHA-256 the spec holds; those of large files are in no document");
  }
  return rows;
}

function row(size, entry) {
  return Array.from({ length: size }, (_, x) => entry(x));
}

function prefix(size) {
  return Array.from({ length: size - 1 }, (_, j) => row(size, (x) => (x <= j ? 1 : 0)));
}

function identity(size) {
  return Array.from({ length: size }, (_, j) => row(size, (x) => (x === j ? 1 : 0)));
}

function haar(size) {
  return innerNodes(size).map(([start, middle, stop]) =>
    row(size, (x) => (x < start || x >= stop ? 0 : x < middle ? 1 : -1)),
  );
}

function hierarchical(size) {
  const nodes = innerNodes(size).map(([start, , stop]) => [start, stop]);
  const leaves = Array.from({ length: size }, (_, x) => [x, x + 1]);
  return [...nodes, ...leaves]
    .sort(([a, b], [c, d]) => d - c - (b - a) || a - c)
    .slice(1)
    .map(([start, stop]) => row(size, (x) => (x >= start && x < stop ? 1 : 0)));
}

// The nodes with two values or more, `[start, middle, stop]`, by depth and from the left.
function innerNodes(size) {
  const found = [];
  let level = [[0, size]];
  while (level.length > 0) {
    const below = [];
    for (const [start, stop] of level) {
      if (stop - start < 2) continue;
      const middle = Math.ceil((start + stop) / 2);
      found.push([start, middle, stop]);
      below.push([start, middle], [middle, stop]);
    }
    level = below;
  }
  return found;
}
