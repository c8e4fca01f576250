// Uniform 64-bit words as BigInts, and exact draws from them. No probability is ever a
// floating-point number: draws compare integers.

const BYTES_A_CALL = 65536; // the most that getRandomValues returns at once
const WORD_BITS = 64;

let generator = globalThis.crypto;
if (generator === undefined) {
  // Node 18 has it under another name.
  generator = (await import("node:crypto")).webcrypto;
}
export const webCrypto = generator;

export class SystemEntropy {
  words(n) {
    const drawn = new BigUint64Array(n);
    const step = BYTES_A_CALL / 8;
    for (let start = 0; start < n; start += step) {
      webCrypto.getRandomValues(drawn.subarray(start, Math.min(n, start + step)));
    }
    return drawn;
  }
}

// `thresholds` are BigInts in 0..2^64, one for each draw: true with probability threshold / 2^64.
export function bernoulliEach(entropy, thresholds) {
  const words = entropy.words(thresholds.length);
  return thresholds.map((threshold, i) => words[i] < threshold);
}

// True with a rational probability, exactly.
export function bernoulliRational(entropy, probability) {
  return choose(entropy, [probability]) === 0;
}

// The same for several probabilities: a word for each, in order, then further ones for those that are
// undecided.
export function bernoulliRationals(entropy, probabilities) {
  const words = entropy.words(probabilities.length);
  return probabilities.map((probability, i) => chooseByWord(entropy, [probability], words[i]) === 0);
}

// The part of 0..1 in which a uniform number falls, exactly; `ends` are ascending rationals. A word is
// compared with their first 64 binary digits; if it equals some of them, the next word is compared
// with their next 64. Where there is only one part no word is drawn.
export function choose(entropy, ends) {
  const inside = ends.some(({ numerator, denominator }) => numerator > 0n && numerator < denominator);
  return chooseByWord(entropy, ends, inside ? entropy.words(1)[0] : 0n);
}

// The same, given the first word.
export function chooseByWord(entropy, ends, first) {
  let below = 0;
  let word = first;
  let open = ends.map(({ numerator, denominator }) => ({ rest: numerator, denominator }));
  for (;;) {
    below += open.filter(({ rest }) => rest <= 0n).length;
    open = open.filter(({ rest, denominator }) => rest > 0n && rest < denominator);
    if (open.length === 0) return below;
    const digits = open.map(({ rest, denominator }) => (rest << 64n) / denominator);
    below += digits.filter((digit) => digit < word).length;
    open = open
      .filter((_, i) => digits[i] === word)
      .map(({ rest, denominator }) => ({ rest: (rest << 64n) % denominator, denominator }));
    if (open.some(({ rest }) => rest > 0n)) [word] = entropy.words(1);
  }
}

// Each 64 coins take one word: its bits from the lowest on.
export function fairCoins(entropy, n) {
  const words = entropy.words(Math.ceil(n / WORD_BITS));
  const coins = new Array(n);
  for (let i = 0; i < n; i += 1) {
    coins[i] = ((words[Math.floor(i / WORD_BITS)] >> BigInt(i % WORD_BITS)) & 1n) === 1n;
  }
  return coins;
}

// Exactly uniform numbers below each bound (a number in 1..2^53): the lowest bits of a word. Those that
// are too large are drawn again, all first words before all second ones.
export function uniformBelowEach(entropy, bounds) {
  const drawn = new Array(bounds.length);
  const masks = bounds.map((bound) => (1n << BigInt(bitLength(bound - 1))) - 1n);
  let open = bounds.map((_, i) => i);
  while (open.length > 0) {
    const words = entropy.words(open.length);
    const rejected = [];
    open.forEach((i, at) => {
      const number = Number(words[at] & masks[i]);
      if (number < bounds[i]) drawn[i] = number;
      else rejected.push(i);
    });
    open = rejected;
  }
  return drawn;
}

export function uniformBelow(entropy, bound, n) {
  return uniformBelowEach(entropy, new Array(n).fill(bound));
}

// The number of binary digits of an integer in 0..2^53 - 1.
export function bitLength(number) {
  return number === 0 ? 0 : number.toString(2).length;
}
