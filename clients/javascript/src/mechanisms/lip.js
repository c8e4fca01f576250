// Localized information privacy: the level in the clear, the bit through the level's channel.

import { bernoulliEach } from "../entropy.js";
import { symbols } from "./symbols.js";

export function lip({ thresholds }) {
  const table = thresholds.flat().map(BigInt);
  return symbols(table.length, (values, entropy) => {
    const bits = bernoulliEach(
      entropy,
      values.map((value) => table[value]),
    );
    return values.map((value, i) => value - (value % 2) + Number(bits[i]));
  });
}
