// Asking the worker that served this page, with a token where it wants one.

/** @typedef {import("./types.js").Span} Span */

const TOKEN_KEY = "ldpstream.token";
const PATIENCE_MS = 60000;

/** A refusal: the HTTP status and the worker's own words. */
export class AnswerError extends Error {
  /**
   * @param {number} status
   * @param {string} text
   */
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/** @returns {string} The token of this tab; empty where there is none. */
export function token() {
  return sessionStorage.getItem(TOKEN_KEY) ?? "";
}

/** @param {string} given Kept until the tab is closed. */
export function keepToken(given) {
  sessionStorage.setItem(TOKEN_KEY, given);
}

/**
 * @param {string} withToken
 * @returns {Record<string, string>}
 */
export function headersFor(withToken) {
  return withToken ? { Authorization: `Bearer ${withToken}` } : {};
}

/**
 * @param {Response} answer
 * @returns {Promise<any>}
 */
async function read(answer) {
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) {
    throw new AnswerError(answer.status, body.error ?? `the worker answered ${answer.status}`);
  }
  return body;
}

/**
 * Ask, but not for ever: whoever waits for an answer asks nothing else.
 *
 * @param {string} path
 * @param {Record<string, string>} headers
 * @returns {Promise<any>}
 */
export async function request(path, headers) {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), PATIENCE_MS);
  try {
    // Revalidated by its tag: of what has not changed the worker computes nothing again.
    return await read(await fetch(path, { cache: "no-cache", headers, signal: stop.signal }));
  } finally {
    clearTimeout(timer);
  }
}

let askedDocument = "";

/** @returns {string} The path of the document that a view asked for first; empty before. */
export const askedFirst = () => askedDocument;

/** A view is about to ask for its documents. */
export function beginAsking() {
  askedDocument = "";
}

/**
 * @param {string} path
 * @returns {Promise<any>}
 */
export async function ask(path) {
  if (path.includes("/estimate?")) askedDocument ||= path;
  return request(path, headersFor(token()));
}

/** @param {string} name */
export function collectionPath(name) {
  return `api/collections/${encodeURIComponent(name)}`;
}

let about = { collection: "", attribute: "" };

/**
 * Ask from now on for an attribute of a collection of records.
 *
 * @param {string} collection
 * @param {string} attribute Empty where values are no records.
 */
export function askAbout(collection, attribute) {
  about = { collection, attribute };
}

/**
 * @param {string} name
 * @param {Span} span
 * @param {[string, string][]} options
 */
export function estimatePath(name, span, options) {
  const query = new URLSearchParams([["start", span.start], ["end", span.end], ...options]);
  if (about.attribute && name === about.collection) query.set("attribute", about.attribute);
  return `${collectionPath(name)}/estimate?${query}`;
}
