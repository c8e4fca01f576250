// The windows in which a ledger takes part if it spreads its budget, drawn from the device's secret
// alone (docs/wire.md, "Spread"; vectors in tests/vectors/spread.json).

import { bitLength } from "./entropy.js";
import { fromHex, signer } from "./hash.js";

export const MAX_SPREAD_WINDOWS = 1_000_000;

// The numbers of the drawn windows, ascending: `reports` of 0..windows-1. `startMs` is the start of the
// period, or null for one set for all periods. `fingerprint` is 16 hexadecimal digits.
export async function drawnWindows(secret, fingerprint, startMs, { windows, reports }) {
  const word = await wordsOf(secret, startMs === null ? "rolling" : "spread", fingerprint, startMs);
  const chosen = new Set();
  for (let last = windows - reports; last < windows; last += 1) {
    const number = await below(word, last + 1);
    chosen.add(chosen.has(number) ? last : number);
  }
  return [...chosen].sort((a, b) => a - b);
}

// Resolves to a function that returns, one by one, 64-bit words derived from a secret, a name and,
// optionally, a time.
export async function wordsOf(secret, name, fingerprint, startMs = null) {
  const sign = await signer(secret);
  const start = new Uint8Array(startMs === null ? 0 : 8);
  if (startMs !== null) new DataView(start.buffer).setBigInt64(0, BigInt(startMs), true);
  const message = [...new TextEncoder().encode(name), ...fromHex(fingerprint), ...start];
  let counter = 0n;
  return async () => {
    const data = new Uint8Array([...message, ...new Array(8).fill(0)]);
    new DataView(data.buffer).setBigUint64(message.length, counter, true);
    counter += 1n;
    return new DataView(await sign(data)).getBigUint64(0, true);
  };
}

// A uniform number below a bound, by rejection on the lowest bits of words.
export async function below(word, bound) {
  const mask = (1n << BigInt(bitLength(bound - 1))) - 1n;
  for (;;) {
    const number = Number((await word()) & mask);
    if (number < bound) return number;
  }
}

// In how many windows of a period each collection takes part, at least one, or null if that does not
// fit. All take part in the same fraction of their windows, the largest that fits, rounded down.
export function sharedOut(windowsMs, horizonMs, fits) {
  const reports = (stretchMs) =>
    windowsMs.map((windowMs) => Math.max(1, Math.floor(stretchMs / windowMs)));
  if (!fits(reports(0))) return null;
  let [least, most] = [0, horizonMs];
  while (least < most) {
    const middle = least + Math.ceil((most - least) / 2);
    if (fits(reports(middle))) least = middle;
    else most = middle - 1;
  }
  return reports(least);
}
