// Integers with two-sided geometric noise of one or several kinds, clamped.

import { fairCoins } from "../entropy.js";
import { Powers, trials } from "./powers.js";

const WORD = 1n << 64n;

export class TwoSided {
  #powers;
  #lowDigits;
  #largest;

  // Kind i has a = thresholds[i] / 2^64 (BigInts); numbers are below `largest`.
  constructor(thresholds, largest) {
    this.#largest = largest;
    this.#powers = thresholds.map((threshold) => new Powers(threshold));
    const most = thresholds.reduce((a, b) => (a > b ? a : b));
    this.#lowDigits = countLowDigits(this.#powers[thresholds.indexOf(most)], largest);
  }

  // Returns `values`, each in 0..last, with noise of its kind added.
  move(entropy, values, last, kinds) {
    const powers = kinds.map((kind) => this.#powers[kind]);
    const digits = this.#lowDigits;
    const cells = this.#drawCells(entropy, powers);
    const up = values.map((_, i) => cells[i * (digits + 1)]);
    const noise = values.map((_, i) => {
      let number = 0;
      for (let j = digits; j >= 1; j -= 1) {
        number = 2 * number + (cells[i * (digits + 1) + j] ? 1 : 0);
      }
      return number;
    });
    // Trials go on until one fails, also where the result is clamped whatever follows, because how many
    // words are drawn must not depend on the value.
    let active = values.map((_, i) => i);
    while (active.length > 0) {
      const levels = new Array(active.length).fill(digits);
      const success = trials(entropy, active.map((i) => powers[i]), levels);
      active = active.filter((_, at) => success[at]);
      for (const i of active) noise[i] = Math.min(noise[i] + 2 ** digits, this.#largest);
      if (2 ** digits >= this.#largest) break; // one success clamps every value
    }
    return values.map((value, i) =>
      up[i] ? Math.min(value + 1 + noise[i], last[i]) : Math.max(value - noise[i], 0),
    );
  }

  // The direction and the low digits of each number: 1 with probability p / (1 + p), where p is the
  // cell's power. A fair coin chooses between 0 and a trial of p; a failed trial starts over.
  #drawCells(entropy, powers) {
    const levels = [0, ...Array.from({ length: this.#lowDigits }, (_, j) => j)];
    const cells = new Array(powers.length * levels.length).fill(false);
    let undecided = cells.map((_, i) => i);
    while (undecided.length > 0) {
      const coins = fairCoins(entropy, undecided.length);
      undecided = undecided.filter((_, at) => coins[at]);
      const success = trials(
        entropy,
        undecided.map((cell) => powers[Math.floor(cell / levels.length)]),
        undecided.map((cell) => levels[cell % levels.length]),
      );
      undecided = undecided.filter((cell, at) => {
        cells[cell] = success[at];
        return !success[at];
      });
    }
    return cells;
  }
}

// The least s with a^(2^s) < 1/2 or 2^s >= the largest dimension.
function countLowDigits(powers, largest) {
  let s = 0;
  while (2 ** s < largest && 2n * powers.digits(s, 1) >= WORD) s += 1;
  return s;
}
