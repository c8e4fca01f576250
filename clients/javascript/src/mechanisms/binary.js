// Two values, a budget for each direction: report 1 with probability q (first value) or r (second).

import { bernoulliEach } from "../entropy.js";
import { symbols } from "./symbols.js";

export function binary({ thresholds }) {
  const table = thresholds.map(BigInt);
  return symbols(2, (values, entropy) =>
    bernoulliEach(
      entropy,
      values.map((value) => table[value]),
    ).map(Number),
  );
}
