// Maps a device's labels to indices of values, 0..k-1, in row-major order for several dimensions.

import { SpecError, ValueOutsideDomainError } from "./errors.js";
import { positionIn, roundAtRandom } from "./rounding.js";

const WHOLE = /^-?[0-9]+$/;

// Returns `{shape, index(labels, entropy)}` for the canonical spec's domain; only a domain that rounds
// at random uses the entropy.
export function readDomain(canonical) {
  const { weights, ...own } = canonical;
  const domain = readValues(own);
  if (weights === undefined) return domain;
  return withWeights(domain, weights.public ?? weights.private);
}

function readValues(canonical) {
  if (canonical.attributes !== undefined) return records(canonical.attributes);
  if (canonical.atoms !== undefined) return atoms(canonical.atoms, readValues(canonical.of));
  if (canonical.rounding === "random") return rounded(canonical.interval, canonical.bins);
  if (canonical.values !== undefined) return labels(canonical.values);
  if (canonical.interval !== undefined) return interval(canonical.interval, canonical.bins);
  const shape = canonical.sizes ?? canonical.grid ?? [canonical.size];
  if (!shape.every((extent) => Number.isSafeInteger(extent) && extent > 0)) {
    throw new SpecError("domain", "values, size, grid, sizes or interval");
  }
  return lattice(shape);
}

// Sets of values that are reported alike: `runs` are the set and the length of each run of values.
function atoms(runs, values) {
  const ofValue = runs.flatMap(([atom, length]) => new Array(length).fill(atom));
  if (ofValue.length !== sizeOf(values)) throw new SpecError("domain.atoms", "a set for each value");
  const find = (label) => ofValue[values.find(label)] ?? null;
  return { ...values, shape: [Math.max(...runs.map(([atom]) => atom)) + 1], find };
}

// The mechanism draws the attribute at whose value a record is placed. A pair comes after both of its
// attributes, whose numbers are `pair`.
function records(attributes) {
  const parts = [];
  for (const { name, domain } of attributes) {
    parts.push({ name, domain: domain.pair ? pairOf(domain.pair, parts) : readDomain(domain) });
  }
  return { shape: [0], attributes: parts };
}

function pairOf(names, known) {
  const pair = names.map((name) => known.findIndex((one) => one.name === name));
  if (pair.length !== 2 || pair.some((j) => j < 0 || known[j].domain.pair)) {
    throw new SpecError("domain", "pairs of two attributes");
  }
  return { shape: pair.map((j) => sizeOf(known[j].domain)), pair };
}

export function sizeOf({ shape }) {
  return shape.reduce((product, extent) => product * extent, 1);
}

// Labels are found in any of Unicode's spellings of them, and no two may differ in nothing else. Integers
// are known by their digits: those that no number holds are given as BigInts or texts.
function labels(values) {
  const numbers = new Map(values.map((value, i) => [String(value).normalize(), i]));
  if (numbers.size < values.length) throw new SpecError("domain.values", "values that look different");
  const large = [...numbers.keys()].some((text) => WHOLE.test(text) && !Number.isSafeInteger(Number(text)));
  const hint = large ? " (integers of 2^53 or more as BigInt or text)" : "";
  const expected = `one of the ${values.length} labels of the domain${hint}`;
  return {
    shape: [values.length],
    expected,
    find(label) {
      const whole = ["string", "bigint"].includes(typeof label) || Number.isSafeInteger(label);
      return whole ? (numbers.get(String(label).normalize()) ?? null) : null;
    },
    index: indexAll,
  };
}

function lattice(shape) {
  const ranges = shape.map((extent) => `0..${extent - 1}`).join(", ");
  return {
    shape,
    ends: shape.map((extent) => [0, extent - 1]),
    whole: true,
    expected: shape.length === 1 ? `an integer in ${ranges}` : `integers in ${ranges}`,
    find(label) {
      return join(shape, label, (axis, entry) =>
        Number.isInteger(entry) && entry >= 0 && entry < shape[axis] ? entry : null,
      );
    },
    index: indexAll,
  };
}

// Bins are half-open except for the last; numbers are compared with edges as the decimals that they
// print as (docs/wire.md).
function interval(bounds, bins) {
  const ranges = bounds.map(([low, high]) => `[${low}, ${high}]`).join(", ");
  const positions = bounds.map((ends, axis) => positionIn(ends, bins[axis]));
  return {
    shape: bins,
    ends: bounds,
    expected: bounds.length === 1 ? `a number in ${ranges}` : `numbers in ${ranges}`,
    find(label) {
      return join(bins, label, (axis, entry) => {
        const [low, high] = bounds[axis];
        if (typeof entry !== "number" || !(entry >= low && entry <= high)) return null;
        const { numerator, denominator } = positions[axis](entry);
        return Math.min(Number(numerator / denominator), bins[axis] - 1);
      });
    },
    index: indexAll,
  };
}

// The values are the edges, one more than bins; a number is rounded to one of the two nearest.
function rounded(bounds, bins) {
  const numbers = interval(bounds, bins);
  return {
    shape: bins.map((count) => count + 1),
    ends: bounds,
    expected: numbers.expected,
    index(labels, entropy) {
      numbers.index(labels); // check that all are inside before drawing any word
      const columns = bounds.map((ends, axis) => {
        const positionOf = positionIn(ends, bins[axis]);
        const points = labels.map((label) => (bounds.length === 1 ? label : label[axis]));
        return roundAtRandom(entropy, points.map(positionOf));
      });
      return labels.map((_, i) =>
        columns.reduce((number, column, axis) => number * (bins[axis] + 1) + column[i], 0),
      );
    },
    find: (label) => numbers.find(label),
  };
}

function withWeights(values, largest) {
  const expected = `${values.expected}, with a weight in 0..${largest} after it`;
  const valueOf = (label) => (values.shape.length === 1 ? label[0] : label.slice(0, -1));
  return {
    shape: [...values.shape, largest + 1],
    expected,
    index(labels, entropy) {
      if (!Array.isArray(labels)) throw new TypeError("expected an array of labels");
      const weights = labels.map((label, position) => {
        const weight = Array.isArray(label) ? label[values.shape.length] : undefined;
        const whole = Number.isInteger(weight) && weight >= 0 && weight <= largest;
        const own = whole && label.length === values.shape.length + 1 ? valueOf(label) : null;
        if (own === null || values.find(own) === null) {
          throw new ValueOutsideDomainError(position, expected);
        }
        return weight;
      });
      const found = values.index(labels.map(valueOf), entropy);
      return found.map((value, i) => value * (largest + 1) + weights[i]);
    },
  };
}

// The labels of `lip` if devices give a prior, a budget or both: `[value, prior, epsilon]`.
export function withPriors(values, { edges, epsilons }) {
  const others = (edges === null ? 0 : 1) + (epsilons.length > 1 ? 1 : 0);
  if (others === 0) return values;
  const parts = [];
  if (edges !== null) parts.push("a prior above 0 and below 1");
  if (epsilons.length > 1) parts.push(`one of the epsilons ${epsilons.join(", ")}`);
  return {
    shape: [values.shape[0] * epsilons.length * (edges === null ? 1 : edges.length - 1)],
    expected: `${values.expected}, with ${parts.join(" and ")}`,
    find(label) {
      if (!Array.isArray(label) || label.length !== others + 1) return null;
      const own = values.find(label[0]);
      let level = 0;
      if (edges !== null) {
        if (typeof label[1] !== "number" || !(label[1] > 0 && label[1] < 1)) return null;
        level = lastNotAbove(edges, label[1]);
      }
      if (epsilons.length > 1) {
        const place = epsilons.indexOf(label[label.length - 1]);
        if (place < 0) return null;
        level = level * epsilons.length + place;
      }
      return own === null ? null : 2 * level + own;
    },
    index: indexAll,
  };
}

// Labels with numbers outside the domain moved to its nearest end; what is no number stays, to be
// refused.
export function moveInside({ ends, whole = false }, labels) {
  if (ends === undefined) throw new RangeError("clamp: expected a collection with only numbers");
  const isNumber = (entry) => typeof entry === "number" && (whole ? Number.isInteger(entry) : !Number.isNaN(entry));
  const moved = (entry, axis) => Math.min(Math.max(entry, ends[axis][0]), ends[axis][1]);
  return labels.map((label) => {
    const entries = ends.length === 1 ? [label] : label;
    const isPoint = Array.isArray(entries) && entries.length === ends.length && entries.every(isNumber);
    if (!isPoint) return label;
    return ends.length === 1 ? moved(label, 0) : entries.map(moved);
  });
}

function indexAll(given) {
  if (!Array.isArray(given)) throw new TypeError("expected an array of labels");
  return given.map((label, position) => {
    const found = this.find(label);
    if (found === null) throw new ValueOutsideDomainError(position, this.expected);
    return found;
  });
}

// The coordinates of a value.
export function split(value, shape) {
  const coordinates = new Array(shape.length);
  let rest = value;
  for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
    coordinates[axis] = rest % shape[axis];
    rest = Math.floor(rest / shape[axis]);
  }
  return coordinates;
}

function join(shape, label, place) {
  const entries = shape.length === 1 ? [label] : label;
  if (!Array.isArray(entries) || entries.length !== shape.length) return null;
  let number = 0;
  for (let axis = 0; axis < shape.length; axis += 1) {
    const coordinate = place(axis, entries[axis]);
    if (coordinate === null) return null;
    number = number * shape[axis] + coordinate;
  }
  return number;
}

function lastNotAbove(ascending, number) {
  let [low, high] = [0, ascending.length];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (ascending[middle] <= number) low = middle;
    else high = middle;
  }
  return low;
}
