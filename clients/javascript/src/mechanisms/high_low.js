// Sensitive values hidden among Hadamard positions; the others mostly in the clear.

import { blockChain } from "../chains.js";
import { SpecError } from "../errors.js";
import { sha256OfNumbers } from "../hash.js";
import { moveToSign, signOrder } from "./hadamard.js";
import { symbols } from "./symbols.js";

const WORD = 1n << 64n;

// The numbers of the sensitive values, ascending.
export async function readSensitive(parameters, size, tables) {
  const sensitive = tables.sensitive ?? [];
  if (
    !sensitive.every((value) => Number.isInteger(value) && value >= 0 && value < size) ||
    (await sha256OfNumbers(sensitive)) !== parameters.sensitive.sha256
  ) {
    throw new SpecError("tables.sensitive", "the values whose SHA-256 the spec holds");
  }
  return sensitive;
}

export async function highLow(parameters, size, tables) {
  const sensitive = await readSensitive(parameters, size, tables);
  const threshold = BigInt(parameters.threshold);
  const plainThreshold = 2n * threshold - WORD;
  const positions = signOrder(sensitive.length);
  const rows = new Array(size).fill(0);
  sensitive.forEach((value, i) => {
    rows[value] = i + 1;
  });
  let next = positions;
  const plain = rows.map((row) => (row > 0 ? null : next++));
  return symbols(next, (values, entropy) => {
    const decisions = entropy.words(values.length);
    const drawn = entropy.words(values.length);
    return values.map((value, i) => {
      const row = rows[value];
      const position = Number(drawn[i] & BigInt(positions - 1));
      if (row > 0) return moveToSign(row, position, decisions[i] < threshold);
      return decisions[i] < plainThreshold ? plain[value] : position;
    });
  }, blockChain({ starts: [0], orders: [positions] }));
}
