// What a ledger is made with: the budget, and each collection's windows, by its fingerprint.

import { LedgerError } from "./errors.js";
import { lockOf } from "./ledger_state.js";
import { sum, times } from "./loss.js";
import { isAbove, readRational, write } from "./rational.js";
import { MAX_SPREAD_WINDOWS, sharedOut } from "./spread.js";

// With `spread` each collection has how many `reports` of how many `windows` it sends in a period.
export function readTerms({ storage, budget, horizonMs, collections, spread }) {
  if (lockOf(storage) === null) {
    throw new LedgerError(
      "storage: expected Web Locks (a page over https or of localhost), a FileStorage, or a " +
        "storage with lock(place, run): without a lock two of them spend one budget twice",
    );
  }
  const allowed = readRational(String(budget));
  if (allowed === null || allowed.numerator === 0n) {
    throw new LedgerError("budget: expected a finite number above 0");
  }
  const isLength = (length) => Number.isSafeInteger(length) && length > 0;
  if (horizonMs !== null && !isLength(horizonMs)) {
    throw new LedgerError("horizonMs: expected whole milliseconds above 0, or null");
  }
  for (const [{ name }, windowMs] of collections) {
    if (!isLength(windowMs) || (horizonMs !== null && horizonMs % windowMs !== 0)) {
      throw new LedgerError(`${name}: expected windows that divide the horizon`);
    }
  }
  for (const [{ name, oneReport }, windowMs] of collections) {
    if (oneReport !== null && oneReport.windowMs !== windowMs) {
      throw new LedgerError(`${name}: expected windows of ${oneReport.windowMs} ms, its oneReport's`);
    }
  }
  if (![true, false, "rolling"].includes(spread)) {
    throw new LedgerError('spread: expected true, false or "rolling"');
  }
  for (const [{ name, words }] of collections) {
    if (words !== null && (spread || horizonMs !== null)) {
      throw new LedgerError(`${name}: expected a budget for ever, without horizonMs and spread`);
    }
  }
  for (const [{ name, hold }] of spread ? collections : []) {
    if (hold !== null) throw new LedgerError(`${name}: expected no spread with hold`);
  }
  const known = new Map(
    collections.map(([collection, windowMs]) => [
      collection.fingerprint,
      { name: collection.name, windowMs, loss: collection.chargedLoss(), windows: null, reports: null },
    ]),
  );
  if (spread) shareOut([...known.values()], allowed, horizonMs);
  return { budget: allowed, collections: known, spread };
}

// Refuses a budget below one report: a new ledger could never send anything. One with reports may have
// such a budget, since repeating them costs nothing.
export function checkBudget({ budget, collections, spread }) {
  for (const { name, loss, reports } of collections.values()) {
    if (spread && reports === null) {
      throw new LedgerError("spread: expected a budget of at least one report of each collection");
    }
    if (isAbove(loss, budget)) {
      const [least, given] = [loss, budget].map(write);
      throw new LedgerError(
        `budget: expected at least ${least}, which one report of ${name} loses, got ${given}`,
      );
    }
  }
}

function shareOut(all, budget, horizonMs) {
  if (horizonMs === null) {
    throw new LedgerError("spread: expected horizonMs with it: a budget for ever has no windows");
  }
  if (all.some(({ windowMs }) => horizonMs / windowMs > MAX_SPREAD_WINDOWS)) {
    throw new LedgerError(`spread: expected at most ${MAX_SPREAD_WINDOWS} windows in horizonMs`);
  }
  const fits = (counts) => !isAbove(sum(all.map(({ loss }, i) => times(loss, counts[i]))), budget);
  const found = sharedOut(all.map(({ windowMs }) => windowMs), horizonMs, fits);
  // A ledger with reports repeats them whatever its budget is: `checkBudget` refuses the others.
  if (found === null) return;
  all.forEach((one, i) => Object.assign(one, { windows: horizonMs / one.windowMs, reports: found[i] }));
}
