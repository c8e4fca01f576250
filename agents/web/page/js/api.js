// Requests to the worker that served this page, with a token if it requires one.

import { noteDate } from "./shell/clock.js";

const TOKEN_KEY = "ldpstream.token";
const PATIENCE_MS = 60000;
export const GONE = 410;

/** A refusal: the HTTP status and the worker's own words. */
export class AnswerError extends Error {
  /** @param {number} status @param {string} text */
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/** @returns {string} The token of this tab; empty if there is none. */
export function token() {
  return sessionStorage.getItem(TOKEN_KEY) ?? "";
}

/** @param {string} given Kept until the tab is closed. */
export function keepToken(given) {
  sessionStorage.setItem(TOKEN_KEY, given);
}

/** @returns {Record<string, string>} The headers of a request, with the token if there is one. */
export function authorized() {
  return token() ? { Authorization: `Bearer ${token()}` } : {};
}

// Integers of 16 digits or more that are whole values, and all tokens to tell them from parts of others.
const LONG = /[[:,]\s*-?\d{16,}\s*[,\]}]/;
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/**
 * Parse JSON; integers that no double holds, such as codes of 17 digits, become texts.
 *
 * @param {string} text
 * @returns {any} An empty object if it is no JSON.
 */
export function parseExactly(text) {
  /** @param {string} token */
  const quoted = (token) =>
    /^-?\d+$/.test(token) && !Number.isSafeInteger(Number(token)) ? `"${token}"` : token;
  try {
    return JSON.parse(LONG.test(text) ? text.replace(TOKENS, quoted) : text);
  } catch {
    return {};
  }
}

/** @param {unknown} failure @returns {string} Why there is no answer, in the worker's words if it has any. */
export const refusalOf = (failure) =>
  failure instanceof AnswerError ? failure.message : "the worker does not answer";

/** @param {Response} answer @returns {Promise<any>} */
async function read(answer) {
  const body = parseExactly(await answer.text().catch(() => ""));
  if (!answer.ok) {
    throw new AnswerError(answer.status, body.error ?? `the worker answered ${answer.status}`);
  }
  return body;
}

/**
 * Move estimates into their bounds, wherever an answer has them: unbiased ones may be below 0 or above
 * the exactly known share of their block, which the bounds never are. Downloads are not moved.
 *
 * @param {any} part Of an answer.
 */
export function moveWithin(part) {
  if (part === null || typeof part !== "object") return;
  const name = ["share", "mean", "total"].find((one) => one in part) ?? "";
  const { [name]: value, low, high } = part;
  if ([value, low, high].every(Number.isFinite) && (value < low || value > high)) {
    part[name] = value < low ? low : high;
    // A count is a multiple of the share, and a sum one of the mean.
    for (const of of ["count", "total"].filter((one) => one in part && one !== name)) {
      part[of] = value === 0 ? null : (part[of] * part[name]) / value;
    }
  }
  for (const inner of Object.values(part)) moveWithin(inner);
}

/** @type {Record<string, string>} */
let askedPaths = {};

/**
 * Ask with a timeout, since nothing else is asked meanwhile.
 *
 * @param {string} path
 * @returns {Promise<any>}
 */
export async function ask(path) {
  const [, what] = /\/(estimate|change)\?/.exec(path) ?? [];
  if (what) askedPaths[what] ||= path;
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), PATIENCE_MS);
  try {
    // Revalidated by its ETag, so the worker does not compute an unchanged answer again.
    const answer = await fetch(path, {
      cache: "no-cache",
      headers: authorized(),
      signal: stop.signal,
    });
    noteDate(answer);
    const body = await read(answer);
    moveWithin(body);
    return body;
  } finally {
    clearTimeout(timer);
  }
}

/** @param {string} path @returns {Promise<Blob>} The answer as it comes. */
export async function download(path) {
  const answer = await fetch(path, { headers: authorized() });
  return answer.ok ? answer.blob() : read(answer);
}

/**
 * Ask about a span that may have expired.
 *
 * @param {string} path
 * @returns {Promise<any>} null if it has.
 */
export const askKept = (path) =>
  ask(path).catch((error) => {
    if (error instanceof AnswerError && error.status === GONE) return null;
    throw error;
  });

/**
 * @param {"estimate" | "change"} [what]
 * @returns {string} The path of the first that the view asked for; empty before.
 */
export const askedFirst = (what = "estimate") => askedPaths[what] ?? "";

/** Call before a view asks for its documents. */
export function beginAsking() {
  askedPaths = {};
}

/** @param {string} name */
export function collectionPath(name) {
  return `api/collections/${encodeURIComponent(name)}`;
}

let about = { collection: "", attribute: "" };

/**
 * From now on, ask about an attribute of a collection of records.
 *
 * @param {string} collection
 * @param {string} attribute Empty if values are not records.
 */
export function askAbout(collection, attribute) {
  about = { collection, attribute };
}

/** @param {string} name @param {Span} span @param {Options} options */
export const estimatePath = (name, { start, end }, options) =>
  queryPath(name, "estimate", { start, end, ...options });

/** @param {string} name @param {"estimate" | "change" | "series"} what @param {Options} options */
export function queryPath(name, what, options) {
  const query = new URLSearchParams();
  for (const [word, values] of Object.entries(options)) {
    for (const value of [values ?? []].flat()) query.append(word, String(value));
  }
  if (about.attribute && name === about.collection) query.set("attribute", about.attribute);
  return `${collectionPath(name)}/${what}?${query}`;
}
