// Two values, a budget for each direction: report 1 with probability q (first value) or r (second).

import { mixtureChain, readKeep } from "../chains.js";
import { bernoulliEach } from "../entropy.js";
import { SpecError } from "../errors.js";
import { isAbove, rational, readRational } from "../rational.js";
import { symbols } from "./symbols.js";

export function binary({ thresholds }) {
  const table = thresholds.map(BigInt);
  return symbols(2, (values, entropy) =>
    bernoulliEach(
      entropy,
      values.map((value) => table[value]),
    ).map(Number),
  mixtureChain("binary", readEnds));
}

// The ends of the parts of 0..1 that keep a report and that send 0, of which the former is below 1.
function readEnds(keep) {
  const kept = readKeep(keep[0]);
  const zero = readRational(keep[1]);
  if (keep.length !== 2 || zero === null || isAbove(kept, zero) || isAbove(zero, rational(1))) {
    throw new SpecError("hold.keep", "two probabilities that ascend");
  }
  return [kept, zero];
}
