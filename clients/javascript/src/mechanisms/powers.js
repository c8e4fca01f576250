// Exact trials with the probabilities a^(2^level), a = T / 2^64: a uniform number is compared with the
// power, 64 binary digits at a time.

const BITS = 64n;
const WORD = 1n << BITS;

export class Powers {
  #threshold;
  #first = new Map();

  constructor(threshold) {
    this.#threshold = threshold;
  }

  // floor(a^(2^level) * 2^(64 words)), by bounds of growing precision.
  digits(level, words) {
    for (let bits = BITS * BigInt(words + 2); ; bits *= 2n) {
      let low = this.#threshold << (bits - BITS);
      let high = low;
      for (let i = 0; i < level; i += 1) {
        low = (low * low) >> bits;
        high = -((-high * high) >> bits);
      }
      const spare = bits - BITS * BigInt(words);
      if (low >> spare === high >> spare) return low >> spare;
    }
  }

  firstDigits(level) {
    if (!this.#first.has(level)) this.#first.set(level, this.digits(level, 1));
    return this.#first.get(level);
  }

  // The expansion ends after 2^level words; a number that is still equal is not below it.
  beyondFirst(entropy, level) {
    for (let words = 2; words <= 2 ** level; words += 1) {
      const digit = this.digits(level, words) % WORD;
      const [word] = entropy.words(1);
      if (word !== digit) return word < digit;
    }
    return false;
  }
}

// Trial i has the power levels[i] of powers[i]. Takes one word for each trial, in order; then, for each
// that equals its power's first digits, further ones.
export function trials(entropy, powers, levels) {
  const words = entropy.words(levels.length);
  return levels
    .map((level, i) => {
      const limit = powers[i].firstDigits(level);
      return words[i] === limit ? null : words[i] < limit;
    })
    .map((decided, i) => decided ?? powers[i].beyondFirst(entropy, levels[i]));
}
