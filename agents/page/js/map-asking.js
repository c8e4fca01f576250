// All values of a window as columns of numbers, asked for in a worker of the browser.

import { AnswerError, estimatePath, headersFor, token } from "./api.js";

/** @typedef {import("./map-worker.js").Columns} Columns */
/** @typedef {import("./map-worker.js").Reply} Reply */
/** @typedef {import("./types.js").Estimate} Estimate */
/** @typedef {import("./types.js").Span} Span */

/** @type {Worker | null} */
let worker = null;
let last = 0;
/** @type {Map<number, {resolve: (reply: Reply) => void, reject: (failure: Error) => void}>} */
const waiting = new Map();

function start() {
  const made = new Worker(new URL("./map-worker.js", import.meta.url), { type: "module" });
  made.addEventListener("message", (/** @type {MessageEvent<Reply>} */ { data }) => {
    const asked = waiting.get(data.id);
    waiting.delete(data.id);
    if (data.status === 200) asked?.resolve(data);
    else
      asked?.reject(data.status ? new AnswerError(data.status, data.error) : new Error(data.error));
  });
  made.addEventListener("error", () => {
    made.terminate();
    worker = null;
    for (const asked of waiting.values()) asked.reject(new Error("the map's script did not load"));
    waiting.clear();
  });
  return made;
}

/**
 * @param {string} name
 * @param {Span} span
 * @param {string} method
 * @returns {Promise<{estimate: Estimate, columns: Columns}>}
 */
export async function askAll(name, span, method) {
  worker ??= start();
  last += 1;
  const id = last;
  const path = estimatePath(name, span, [
    ["top", "all"],
    ["simultaneous", "true"],
    ["method", method],
  ]);
  const url = new URL(path, document.baseURI).href;
  /** @type {Promise<Reply>} */
  const reply = new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  worker.postMessage({ id, url, headers: headersFor(token()) });
  const { estimate, columns } = await reply;
  return { estimate, columns: /** @type {Columns} */ (columns) };
}
