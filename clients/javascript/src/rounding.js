// Intervals in equal steps, in the decimals that people write: 0.3 stands for three tenths, not for the
// double next to it. Numbers are rounded at random to edges with exact rational probabilities.

import { decimalOf, subtract } from "./rational.js";

const WORD = 1n << 64n;

// Returns a function from a number to where it lies, in steps from the low end: a rational.
export function positionIn([low, high], steps) {
  const start = decimalOf(low);
  const length = subtract(decimalOf(high), start);
  return (number) => {
    const above = subtract(decimalOf(number), start);
    return {
      numerator: above.numerator * length.denominator * BigInt(steps),
      denominator: above.denominator * length.numerator,
    };
  };
}

// Returns an edge beside each position, an integer.
export function roundAtRandom(entropy, positions) {
  const words = entropy.words(positions.length);
  return positions.map(({ numerator, denominator }, i) => {
    const below = Number(numerator / denominator);
    return below + (isUp(entropy, numerator % denominator, denominator, words[i]) ? 1 : 0);
  });
}

// True with probability rest / denominator; words are the digits of a uniform number below 1. Only a
// word that equals a digit is followed by another, so that the number of words has one distribution.
function isUp(entropy, rest, denominator, first) {
  let [left, word] = [rest, first];
  for (;;) {
    left *= WORD;
    const digit = left / denominator;
    if (word !== digit) return word < digit;
    left %= denominator;
    [word] = entropy.words(1);
  }
}
