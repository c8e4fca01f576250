// The sentence of the view over time: what has changed from the first final window to the last.

import { clockText } from "../format.js";
import { changedText, changesOf } from "./changes.js";
import { saidOf } from "./first.js";

/** @typedef {import("../types.js").Collection} Collection */
/** @typedef {import("../types.js").Estimate} Estimate */
/** @typedef {import("../types.js").WindowState} WindowState */

/** @type {{key: string, text: string}} */
const newest = { key: "", text: "" };

/**
 * @param {Collection} collection
 * @param {WindowState[]} windows
 * @param {Estimate[]} estimates One per window.
 * @param {boolean} listed Whether there are few enough values to compare all of them.
 */
export async function courseText(collection, windows, estimates, listed) {
  const finals = windows.filter((_, at) => estimates[at].final && !estimates[at].withheld);
  const [first, last] = [finals[0], finals[finals.length - 1]];
  if (!last) return "No window is final yet.";
  if (!listed || collection.domain.ordered || first === last) {
    // Not of values: their bounds may be pointwise, so none can be called the largest.
    const { said, bounds } = saidOf(
      { ...estimates[windows.indexOf(last)], distribution: [] },
      collection.domain,
    );
    return (
      said && `${said} (${bounds}) in the newest final window, ${clockText(last.window.start)}.`
    );
  }
  const key = [collection.fingerprint, first.window.start, last.window.start].join();
  // Finals do not change, so their difference is fetched once.
  if (newest.key !== key) {
    newest.text = changedText(await changesOf(collection, last, first, collection.method));
    newest.key = key;
  }
  return `From ${clockText(first.window.start)} to ${clockText(last.window.start)}: ${newest.text}`;
}
