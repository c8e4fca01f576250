// The reports that windows send for a permanent one (docs/wire.md, "Hold"). A chain is
// `{form, again}`: two mechanisms with the same `form` have the same reports, and
// `again(keep, permanent)` returns a function `(number, entropy) => number` that draws a report from
// the permanent one.

import { bernoulliRational, choose, uniformBelow } from "./entropy.js";
import { SpecError } from "./errors.js";
import { isAbove, rational, readRational } from "./rational.js";

const ONE = rational(1);

// A probability in `keep`, above 0 and below 1.
export function readKeep(text) {
  const read = readFraction(text);
  if (!isAbove(ONE, read)) throw new SpecError("hold.keep", `a probability below 1, got ${text}`);
  return read;
}

// The same, or 1.
export function readFraction(text) {
  const read = typeof text === "string" ? readRational(text) : null;
  if (read === null || read.numerator === 0n || isAbove(read, ONE)) {
    throw new SpecError("hold.keep", `a probability above 0, and at most 1, got ${text}`);
  }
  return read;
}

// Probabilities by integer, one for each of `wanted`.
export function readKeeps(keep, wanted) {
  const kept = new Map(keep.map(([number, text]) => [number, readKeep(text)]));
  if (!wanted.every((number) => kept.has(number))) {
    throw new SpecError("hold.keep", "a probability for each number of reports of a block");
  }
  return kept;
}

// A report stays, or becomes a uniform one of its block.
export function blockChain({ starts, orders }) {
  return {
    form: JSON.stringify([starts, orders]),
    again(keep) {
      const kept = readKeeps(keep, orders.filter((order) => order > 1));
      return (report, entropy) => {
        const block = starts.filter((start) => start <= report).length - 1;
        const stays = bernoulliRational(entropy, kept.get(orders[block]) ?? ONE);
        const [drawn] = uniformBelow(entropy, orders[block], 1);
        return stays ? report : starts[block] + drawn;
      };
    },
  };
}

// A report stays, or is drawn independently of it; `ends` are the ends of the parts of 0..1.
export function mixtureChain(form, endsOf) {
  return {
    form,
    again(keep, permanent) {
      const ends = endsOf(keep, permanent);
      return (report, entropy) => {
        const part = choose(entropy, ends);
        return part === 0 ? report : part - 1;
      };
    },
  };
}
