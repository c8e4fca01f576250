// The state of a ledger, stored as the text of one item: reports with the keys of their uploads,
// permanent reports of epochs, charges, and the secret of the device's tokens. Reports are randomised;
// no value is ever stored.

import { LedgerError } from "./errors.js";
import { readRational } from "./rational.js";

const VERSION = 1;
// At least 16 bytes.
const SECRET = /^[A-Za-z0-9+/]{22,}={0,2}$/;

export const EMPTY = Object.freeze({ version: VERSION, specs: {}, windows: [] });

// `windows` are {fingerprint, startMs, frame, key, sent}; frame and key are null once forgotten.
// `secret` exists once a collection with oneReport has had a report, or if the budget is spread.
// `drawn`, only with spread, holds the windows drawn for a fingerprint, period, number of windows and
// number of reports. `held`, only with hold, are {fingerprint, startMs, endMs, report}; report is null
// once forgotten.
export function readState(text, place) {
  if (text === null || text === undefined) return structuredClone(EMPTY);
  let state;
  try {
    state = JSON.parse(text);
  } catch {
    state = null;
  }
  const { specs, windows, secret, drawn, held } = state ?? {};
  const isSecret = secret === undefined || (typeof secret === "string" && SECRET.test(secret));
  const sound = isSpecs(specs) && isWindows(windows, specs) && isSecret && isDrawn(drawn);
  if (state?.version !== VERSION || !sound || !isHeld(held, specs)) {
    throw new LedgerError(`${place}: expected a ledger of version ${VERSION}`);
  }
  return state;
}

function isSpecs(specs) {
  return isTable(specs) && Object.values(specs).every((one) => isTable(one) && isSpec(one));
}

function isSpec({ windowMs, loss }) {
  const isLoss = typeof loss === "string" && readRational(loss)?.numerator > 0n;
  return Number.isSafeInteger(windowMs) && windowMs > 0 && isLoss;
}

function isWindows(windows, specs) {
  return Array.isArray(windows) && windows.every((one) => isTable(one) && isWindow(one, specs));
}

function isWindow({ fingerprint, startMs, frame }, specs) {
  const isKept = frame === null || typeof frame === "string";
  return Object.hasOwn(specs, fingerprint) && Number.isSafeInteger(startMs) && isKept;
}

function isDrawn(drawn) {
  if (drawn === undefined) return true;
  return isTable(drawn) && Object.entries(drawn).every(([key, numbers]) => isDraw(key, numbers));
}

function isDraw(key, numbers) {
  const [windows, reports] = key.split(" ").slice(2).map(Number);
  const isPlace = (one) => Number.isInteger(one) && one >= 0 && one < windows;
  return Array.isArray(numbers) && new Set(numbers).size === reports && numbers.every(isPlace);
}

function isHeld(held, specs) {
  if (held === undefined) return true;
  const isLength = ({ startMs, endMs }) => Number.isSafeInteger(endMs) && endMs > startMs;
  const isEpoch = (one) => isWindow({ ...one, frame: one.report }, specs) && isLength(one);
  return Array.isArray(held) && held.every((one) => isTable(one) && isEpoch(one));
}

function isTable(given) {
  return typeof given === "object" && given !== null;
}

export function toText(frame) {
  return btoa(String.fromCharCode(...frame));
}

export function toBytes(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

// Returns a function that locks an item of the storage, or null if nothing can. Node's own locks are
// not used, since they only work between threads of one process.
export function lockOf(storage) {
  if (typeof storage.lock === "function") return (place, run) => storage.lock(place, run);
  const isNode = globalThis.process?.release?.name === "node" && globalThis.document === undefined;
  const locks = isNode ? undefined : globalThis.navigator?.locks;
  return locks === undefined ? null : (place, run) => locks.request(place, run);
}
