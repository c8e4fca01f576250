// The most that one report loses: the largest finite budget of any ordered pair of values, as an exact
// rational, rounded up where necessary. Pairs without a budget are unprotected and left out.

import { SpecError } from "./errors.js";
import { ZERO, add, isAbove, multiply, nearest, rational, readRational } from "./rational.js";

const WORD = 1n << 64n;
// More than the rounding error of a few operations on doubles.
const ABOVE = 1 + 1e-12;
const MAX_COMPARED = 512;

// Policies whose finite budgets are all one epsilon.
const SAME = new Set(["classical", "block", "high-low"]);

const LOSSES = new Map([
  ["binary", ({ epsilon }) => largest(epsilon.filter((one) => one !== "inf").map(budget))],
  ["groups", ofGroups],
  ["l1-bits", ofMetric],
  ["l1-geometric", ofMetric],
  ["lip", ({ thresholds }) => largest(thresholds.map(([q, r]) => ofLevel(BigInt(q), BigInt(r))))],
  ["optimal", ({ epsilon }, { policy }) => (epsilon === undefined ? ofPolicy(policy) : budget(epsilon))],
  ["matrix", ({ policy }, rows) => (SAME.has(policy.kind) ? budget(policy.epsilon) : ofRows(rows))],
]);

// `known` is what the mechanism has read from its tables.
export function largestLoss(id, parameters, known) {
  const loss = LOSSES.get(id);
  return loss === undefined ? budget(parameters.epsilon) : loss(parameters, known);
}

// A double such as 0.1 differs from the decimal that was written; the smaller one is the budget.
function budget(epsilon) {
  const [exact, decimal] = [rational(epsilon), readRational(String(epsilon))];
  return isAbove(exact, decimal) ? decimal : exact;
}

export function largest(losses) {
  return losses.reduce((a, b) => (isAbove(b, a) ? b : a), ZERO);
}

function ofGroups({ epsilon, budgets }) {
  if (budgets === undefined) return budget(epsilon);
  const listed = budgets.flatMap(([inside, outside]) => [inside, outside]);
  return largest(listed.filter((one) => one !== "inf").map(budget));
}

// The budget of opposite corners, in the L^p norm of the steps.
function ofMetric({ epsilon, shape, p = 1 }) {
  const steps = shape.map((extent) => extent - 1);
  const step = budget(epsilon);
  if (p === 1) return multiply(step, rational(steps.reduce((a, b) => a + b, 0)));
  if (p === "inf") return multiply(step, rational(Math.max(...steps)));
  // Relative to the longest, because powers of lengths would overflow.
  const longest = Math.max(...steps);
  const norm = longest * steps.reduce((sum, length) => sum + (length / longest) ** p, 0) ** (1 / p);
  return multiply(step, rational(norm * ABOVE));
}

// The two ratios of a level's channel, (1 - q)/(1 - r) and r/q.
function ofLevel(q, r) {
  const logs = [[WORD - q, WORD - r], [r, q]].map(([a, b]) => Math.log1p(Number(a - b) / Number(b)));
  return rational(Math.max(...logs) * ABOVE);
}

// Localized information privacy with epsilon implies twice epsilon against any other value. For
// budgets of pairs it is the longest of all shortest paths.
function ofPolicy(policy) {
  if (policy.kind === "lip") return multiply(budget(policy.epsilon), rational(2));
  const size = policy.kind === "graph" ? policy.size : policy.budgets.length;
  const length = Array.from({ length: size }, () => new Array(size).fill(Infinity));
  const arcs =
    policy.kind === "graph"
      ? policy.edges
      : policy.budgets.flatMap((row, x) => row.map((entry, z) => [x, z, entry]));
  for (const [x, z, entry] of arcs) {
    if (entry === "inf") continue;
    length[x][z] = Math.min(length[x][z], nearest(readRational(entry)) * ABOVE);
  }
  for (let via = 0; via < size; via += 1) {
    for (let x = 0; x < size; x += 1) {
      const first = length[x][via];
      if (first === Infinity) continue;
      for (let z = 0; z < size; z += 1) {
        const around = first + length[via][z];
        if (around < length[x][z]) length[x][z] = around;
      }
    }
  }
  const finite = length.flatMap((row, x) => row.filter((entry, z) => z !== x && entry < Infinity));
  return rational(finite.reduce((a, b) => Math.max(a, b), 0) * ABOVE);
}

// The loss of the realised noise between any two values that the policy joins: `log(2^64 / T)` for
// each step of each noisy row. The policy's budgets allow at least as much.
function ofRows({ rows, thresholds, joined }) {
  if (joined.length > MAX_COMPARED) {
    throw new SpecError("mechanism", `at most ${MAX_COMPARED} values to add up what matrix loses`);
  }
  const rates = thresholds.map((t) => Math.log1p(Number(WORD - t) / Number(t)));
  let most = 0;
  for (let x = 0; x < joined.length; x += 1) {
    for (let z = 0; z < x; z += 1) {
      if (joined[x] !== joined[z]) continue;
      const loss = rows.reduce(
        (sum, { entries, kind }) => sum + Math.abs(entries[x] - entries[z]) * rates[kind],
        0,
      );
      most = Math.max(most, loss);
    }
  }
  return rational(most * ABOVE);
}

export function times(loss, number) {
  return multiply(loss, rational(number));
}

export function sum(losses) {
  return losses.reduce(add, ZERO);
}
