// `hold`: one permanent report an epoch, from which those of its windows follow (docs/wire.md, "Hold";
// the vectors are tests/vectors/hold.json).

import { SpecError } from "./errors.js";
import { build } from "./mechanisms/index.js";
import { below, wordsOf } from "./spread.js";

const MAX_HELD_WINDOWS = 1_000_000;

// What a spec holds: `windows` an epoch, `permanent` the mechanism that draws once, `loss` what that
// draw loses at most, and `send(report, entropy)`, which returns the report of a window.
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

// The epoch `[startMs, endMs)` of the window that starts then: each device's begin elsewhere.
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
