// What the windows over time say first: what has changed from the first final one to the last.

import {
  clockText,
  decimalsFor,
  labelText,
  meanText,
  partText,
  percentText,
  quantileText,
} from "../format.js";
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
    // Of the values none is said to be the largest: their bounds may hold one by one.
    const said = firstText({ ...estimates[windows.indexOf(last)], distribution: [] });
    return said && `${said} in the newest final window, ${clockText(last.window.start)}.`;
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
 * The first number that there is to say, with its bounds: of a quantile, a range, the largest share
 * or a mean. Empty where there is none.
 *
 * @param {Estimate} estimate
 */
export function firstText({ ranges = [], quantiles = [], linear = [], distribution = [] }) {
  const quantile = quantiles[Math.floor(quantiles.length / 2)];
  if (quantile) {
    const part = quantile.p === 0.5 ? "Half" : partText(quantile.p);
    return `${part} of the reports are of ${quantileText(quantile)}`;
  }
  const [entry] = ranges.length ? ranges : distribution;
  if (entry) {
    const decimals = decimalsFor([entry]);
    const [share, low, high] = [entry.share, entry.low, entry.high].map((one) =>
      percentText(one, decimals),
    );
    return `${"name" in entry ? entry.name : labelText(entry.value)} has ${share} (${low} to ${high})`;
  }
  const [mean] = linear;
  if (!mean) return "";
  const [middle, low, high] = [mean.mean, mean.low, mean.high].map((one) => meanText(one, mean));
  return `${mean.name} is ${middle} (${low} to ${high})`;
}
