// Errors say what is wrong and where, and never repeat a private value.

import { isAbove, readRational } from "./rational.js";

// The last millisecond of the year 9999.
const LATEST_MS = 253_402_300_799_999;

export class SpecError extends Error {
  constructor(path, expected, { cause } = {}) {
    super(`${path}: expected ${expected}`, { cause });
    this.name = "SpecError";
    this.path = path;
  }
}

export class ValueOutsideDomainError extends Error {
  constructor(position, expected) {
    super(`value at position ${position}: expected ${expected}`);
    this.name = "ValueOutsideDomainError";
    this.position = position;
    this.expected = expected;
  }
}

// `status` is null if nothing answered; `retriable` says that the same bytes may be sent again.
export class UploadError extends Error {
  constructor(message, { status, retriable, detail = null, retryAfterMs = null, cause }) {
    super(message, { cause });
    this.name = "UploadError";
    this.status = status;
    this.retriable = retriable;
    this.detail = detail;
    this.retryAfterMs = retryAfterMs;
  }
}

// A ledger cannot be used, or a window's report has been forgotten.
export class LedgerError extends Error {
  constructor(message) {
    super(message);
    this.name = "LedgerError";
  }
}

// The ledger spreads its budget over other windows than this one.
export class SkippedError extends LedgerError {
  constructor(collection, { reports, windows }) {
    super(`${collection}: expected one of the ${reports} of ${windows} windows that the budget is spread over`);
    this.name = "SkippedError";
    Object.assign(this, { collection, reports, windows });
  }
}

// A report would spend more than the period has left. `spent`, `asked` and `allowed` are exact
// fractions, as texts. `horizonMs` is the length of a period, null if there is one without end; `nextMs`
// is when the next begins, null if there is none, or if any time span of that length is a period.
export class BudgetError extends LedgerError {
  constructor(collection, { spent, asked, allowed, horizonMs, nextMs }) {
    const period = periodOf(horizonMs, nextMs);
    const wait = isAbove(readRational(asked), readRational(allowed)) ? "" : waitUntil(nextMs);
    super(
      `${collection}: expected at most ${allowed} (budget) ${period}, got ${spent} spent and ` +
        `${asked} asked: ${wait}choose a larger budget`,
    );
    this.name = "BudgetError";
    Object.assign(this, { collection, spent, asked, allowed, horizonMs, nextMs });
  }
}

function waitUntil(nextMs) {
  if (nextMs === null || nextMs > LATEST_MS) return "";
  return `wait for the next, which begins at ${new Date(nextMs).toISOString()}, or `;
}

function periodOf(horizonMs, nextMs) {
  if (horizonMs === null) return "for ever (without horizonMs)";
  const [start, end] = nextMs === null ? ["any", " in a row"] : ["a period of", ""];
  return `in ${start} ${horizonMs} ms${end} (horizonMs)`;
}
