// Estimates of many windows; those of final windows are fetched once.

import { ask, estimatePath } from "./api.js";
import { methodFor } from "./bounds.js";
import { chosen } from "./choices.js";

/** @typedef {import("./types.js").Collection} Collection */
/** @typedef {import("./types.js").Estimate} Estimate */
/** @typedef {import("./types.js").WindowState} WindowState */

const AT_ONCE = 4;
const MOST_KEPT = 2000;
/** @type {Map<string, Estimate>} */
const kept = new Map();

/**
 * @param {Collection} collection
 * @param {WindowState} window
 * @param {[string, string][]} asked
 * @returns {Promise<Estimate>}
 */
async function estimateOf(collection, window, asked) {
  const method = methodFor(collection, window, chosen("method"));
  const path = estimatePath(collection.name, window.window, [...asked, ["method", method]]);
  // n is in the key because after `ldpstream reset` the same span has other reports.
  const key = `${collection.fingerprint} ${window.n} ${path}`;
  const known = kept.get(key);
  if (known) return known;
  /** @type {Estimate} */
  const estimate = await ask(path);
  // A withheld document may still appear once later windows have reports.
  if (estimate.final && !estimate.withheld) {
    if (kept.size >= MOST_KEPT) kept.clear();
    kept.set(key, estimate);
  }
  return estimate;
}

/**
 * Return the estimate of each window, in order, fetching a few at a time.
 *
 * @param {Collection} collection
 * @param {WindowState[]} windows
 * @param {[string, string][]} asked The options for each, except the method.
 * @param {() => boolean} current Fetching ends once it is false.
 * @returns {Promise<Estimate[]>}
 */
export async function estimatesOf(collection, windows, asked, current) {
  /** @type {Estimate[]} */
  const found = new Array(windows.length);
  let next = 0;
  const work = async () => {
    while (next < windows.length && current()) {
      const place = next;
      next += 1;
      found[place] = await estimateOf(collection, windows[place], asked);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return found;
}

/**
 * Windows that are shown only together have the numbers of one span: it is one entry, as wide.
 *
 * @param {WindowState[]} windows Oldest first.
 * @param {Estimate[]} estimates One per window.
 */
export function spansOnce(windows, estimates) {
  /** @type {{windows: WindowState[], estimates: Estimate[], parts: WindowState[][]}} */
  const once = { windows: [], estimates: [], parts: [] };
  windows.forEach((window, at) => {
    const { span, withheld, n } = estimates[at];
    if (span && !withheld && once.windows.at(-1)?.window.start === span.start) {
      once.parts[once.parts.length - 1].push(window);
      return;
    }
    once.windows.push(span && !withheld ? { ...window, window: span, n } : window);
    once.estimates.push(estimates[at]);
    once.parts.push([window]);
  });
  return once;
}
