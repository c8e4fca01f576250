// Random rounding of numbers to one of the two nearest grid points, with exact rational probabilities.

import { rational, subtract } from "./rational.js";

const WORD = 1n << 64n;

// Returns the grid points, integers in 0..steps, for doubles in [low, high].
export function roundAtRandom(entropy, points, low, high, steps) {
  const words = entropy.words(points.length);
  const [lowest, length] = [rational(low), subtract(rational(high), rational(low))];
  return points.map((point, i) => {
    const above = subtract(rational(point), lowest);
    // Position on the grid, as numerator / denominator.
    const numerator = above.numerator * length.denominator * BigInt(steps);
    const denominator = above.denominator * length.numerator;
    const below = numerator / denominator;
    return Number(below) + (isUp(entropy, numerator % denominator, denominator, words[i]) ? 1 : 0);
  });
}

// True with probability rest / denominator; words are the digits of a uniform number below 1.
function isUp(entropy, rest, denominator, first) {
  let [left, word] = [rest, first];
  while (left > 0n) {
    left *= WORD;
    const digit = left / denominator;
    if (word !== digit) return word < digit;
    left %= denominator;
    [word] = entropy.words(1);
  }
  return false;
}
