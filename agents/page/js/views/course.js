// What the windows over time say first: what has changed from the first final one to the last.

import { clockText, decimalsFor, labelText, meanText, percentText } from "../format.js";
import { changedText, changesOf } from "./changes.js";

/** @typedef {import("../types.js").Collection} Collection */
/** @typedef {import("../types.js").Estimate} Estimate */
/** @typedef {import("../types.js").WindowState} WindowState */

/** @type {{key: string, text: string}} */
const newest = { key: "", text: "" };

/**
 * @param {Collection} collection
 * @param {WindowState[]} windows
 * @param {Estimate[]} estimates One a window.
 * @param {boolean} listed Whether there are few enough values to compare all of them.
 */
export async function courseText(collection, windows, estimates, listed) {
  const finals = windows.filter((_, at) => estimates[at].final && !estimates[at].withheld);
  const [first, last] = [finals[0], finals[finals.length - 1]];
  if (!last) return "No window is final yet.";
  if (!listed || collection.domain.ordered || first === last) {
    return newestText(estimates[windows.indexOf(last)], last);
  }
  const key = [collection.fingerprint, first.window.start, last.window.start].join();
  // Finals do not change: their difference is asked for once.
  if (newest.key !== key) {
    newest.text = changedText(await changesOf(collection, last, first, collection.method));
    newest.key = key;
  }
  return `From ${clockText(first.window.start)} to ${clockText(last.window.start)}: ${newest.text}`;
}

/**
 * @param {Estimate} estimate
 * @param {WindowState} window
 */
function newestText({ ranges = [], quantiles = [], linear = [] }, { window }) {
  const when = `in the newest final window, ${clockText(window.start)}`;
  const quantile = quantiles[Math.floor(quantiles.length / 2)];
  if (quantile) {
    const ends = `${labelText(quantile.low)} to ${labelText(quantile.high)}`;
    return `Quantile ${quantile.p} is ${labelText(quantile.value)} (${ends}) ${when}.`;
  }
  const [range] = ranges;
  if (range) {
    const decimals = decimalsFor([range]);
    const [share, low, high] = [range.share, range.low, range.high].map((one) =>
      percentText(one, decimals),
    );
    return `${range.name} has ${share} (${low} to ${high}) ${when}.`;
  }
  const [mean] = linear;
  if (!mean) return "";
  return `${mean.name} is ${meanText(mean.mean)} (${meanText(mean.low)} to ${meanText(mean.high)}) ${when}.`;
}
