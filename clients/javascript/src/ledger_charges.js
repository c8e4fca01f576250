// Reports and charges of windows and epochs in a ledger's state.

import { LedgerError } from "./errors.js";
import { sum, times } from "./loss.js";
import { readRational } from "./rational.js";

export function isOf({ fingerprint }, startMs) {
  return (one) => one.fingerprint === fingerprint && one.startMs === startMs;
}

export function find(state, collection, startMs) {
  const found = state.windows.find(isOf(collection, startMs));
  if (found?.frame === null) throw forgotten(collection);
  return found;
}

export function forgotten({ name }) {
  return new LedgerError(`${name}: expected a window whose report has not been forgotten`);
}

// The epoch with a permanent report that holds a window, if any.
export function epochWith({ held = [] }, { fingerprint }, startMs) {
  return held.find(
    (one) => one.fingerprint === fingerprint && one.startMs <= startMs && startMs < one.endMs,
  );
}

// Whether an epoch has had a report in a span, and hence was charged there.
export function isCharged({ specs, windows }, { fingerprint, startMs, endMs }, isInside) {
  return windows.some(
    (one) =>
      one.fingerprint === fingerprint &&
      startMs <= one.startMs &&
      one.startMs < endMs &&
      isInside(one.startMs, specs[fingerprint].windowMs),
  );
}

export function spentOf({ specs, windows, held = [] }, isInside) {
  const counts = new Map();
  const add = (fingerprint) => counts.set(fingerprint, (counts.get(fingerprint) ?? 0) + 1);
  const holding = new Set(held.map(({ fingerprint }) => fingerprint));
  for (const { fingerprint, startMs } of windows) {
    if (!holding.has(fingerprint) && isInside(startMs, specs[fingerprint].windowMs)) add(fingerprint);
  }
  for (const epoch of held) {
    if (isCharged({ specs, windows }, epoch, isInside)) add(epoch.fingerprint);
  }
  return sum([...counts].map(([one, count]) => times(readRational(specs[one].loss), count)));
}
