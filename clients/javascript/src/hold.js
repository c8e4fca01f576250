// `hold`: one permanent report for each epoch, from which the reports of its windows follow
// (docs/wire.md, "Hold"; vectors in tests/vectors/hold.json).

import { SpecError } from "./errors.js";
import { build } from "./mechanisms/index.js";
import { below, wordsOf } from "./spread.js";

const MAX_HELD_WINDOWS = 1_000_000;

// Returns the hold of a spec: the number of `windows` of an epoch, the mechanism `permanent` that draws
// once, the `loss` of that draw, and `send(report, entropy)`, which returns the report of a window.
export async function readHold(spec, values, tables, own) {
  const { windows, permanent, keep } = spec.hold;
  if (!Number.isInteger(windows) || windows < 2 || windows > MAX_HELD_WINDOWS) {
    throw new SpecError("hold.windows", `a whole number from 2 to ${MAX_HELD_WINDOWS}`);
  }
  if (permanent === undefined) {
    return { windows, permanent: own.mechanism, loss: own.loss, send: (report) => report };
  }
  const { mechanism, loss } = await build(spec.mechanism, permanent, values, tables);
  const { chain } = own.mechanism;
  if (chain === undefined || chain.form !== mechanism.chain?.form) {
    throw new SpecError("hold.permanent", "the reports of the mechanism itself");
  }
  return { windows, permanent: mechanism, loss, send: chain.sender(keep, mechanism) };
}

// This device's epoch `[startMs, endMs)` that holds the window starting at a time.
export async function epochOf(secret, fingerprint, startMs, { windows, windowMs }) {
  const offset = await epochOffset(secret, fingerprint, windows);
  const number = Math.floor((startMs / windowMs + offset) / windows);
  const firstMs = (number * windows - offset) * windowMs;
  return { startMs: firstMs, endMs: firstMs + windows * windowMs };
}

// By how many windows a device's epochs begin before multiples of their length.
export async function epochOffset(secret, fingerprint, windows) {
  return below(await wordsOf(secret, "hold", fingerprint), windows);
}
