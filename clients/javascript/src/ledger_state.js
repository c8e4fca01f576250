// What a ledger keeps, as the text of one item of a storage: reports, which are randomised, with the
// keys of their uploads, what was charged, and the secret of the device's tokens; never a value.

import { LedgerError } from "./errors.js";
import { readRational } from "./rational.js";

const VERSION = 1;

export const EMPTY = Object.freeze({ version: VERSION, specs: {}, windows: [] });

// `windows` are {fingerprint, startMs, frame, key, sent}; frame and key are null where forgotten.
// `secret` is there only where a collection with oneReport has had a report.
export function readState(text, place) {
  if (text === null || text === undefined) return structuredClone(EMPTY);
  let state;
  try {
    state = JSON.parse(text);
  } catch {
    state = null;
  }
  const { specs, windows, secret = "" } = state ?? {};
  const sound = isSpecs(specs) && isWindows(windows, specs) && typeof secret === "string";
  if (state?.version !== VERSION || !sound) {
    throw new LedgerError(`${place}: expected a ledger of version ${VERSION}`);
  }
  return state;
}

function isSpecs(specs) {
  return (
    typeof specs === "object" &&
    specs !== null &&
    Object.values(specs).every(
      ({ windowMs, loss }) => Number.isSafeInteger(windowMs) && windowMs > 0 && readRational(loss) !== null,
    )
  );
}

function isWindows(windows, specs) {
  return (
    Array.isArray(windows) &&
    windows.every(
      ({ fingerprint, startMs, frame }) =>
        Object.hasOwn(specs, fingerprint) &&
        Number.isSafeInteger(startMs) &&
        (frame === null || typeof frame === "string"),
    )
  );
}

export function toText(frame) {
  return btoa(String.fromCharCode(...frame));
}

export function toBytes(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}
