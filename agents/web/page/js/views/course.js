// The sentence of the view over time: which lines rose or fell from the first final window to the
// last.

import { clockText } from "../format.js";
import { estimatesOf } from "../history.js";
import { MOST_LINES, titled } from "../series.js";
import { halfError, isShown, listText } from "./changes.js";
import { changeOf } from "./first.js";

/** @typedef {import("../types.js").Estimate} Estimate */
/** @typedef {import("../types.js").WindowState} WindowState */

/**
 * Each window gets half of the error, for all that could have been picked together.
 *
 * @param {import("../types.js").Collection} collection
 * @param {WindowState[]} windows
 * @param {Estimate[]} estimates One per window.
 * @param {string[]} titles Of the lines that are drawn.
 * @param {[string, string][]} asked
 * @param {() => boolean} current
 */
export async function courseText(collection, windows, estimates, titles, asked, current) {
  const finals = windows.filter((_, at) => estimates[at].final && !estimates[at].withheld);
  const ends = [...new Set([finals.at(0), finals.at(-1)])].flatMap((one) => one ?? []);
  if (ends.length === 0) return "No final window has numbers yet.";
  const since = `Since ${clockText(ends[0].window.start)}`;
  if (ends.length === 1)
    return `${since} no other final window has numbers: nothing to compare yet.`;
  if (titles.length === 0) return "";
  const half = await estimatesOf(
    collection,
    ends,
    [...asked, ["confidence", halfError(collection)]],
    current,
  );
  if (!current()) return "";
  const told = titled(collection, ends, half, titles).flatMap(changeOf);
  const moved = told.filter(({ change }) => isShown(change)).map(movedText);
  const others = told.filter(({ change }) => !isShown(change)).map(({ name }) => name);
  const same = listText(others, MOST_LINES);
  if (moved.length === 0) return same && `${since}: no difference shown for ${same}.`;
  return `${since} ${listText(moved, MOST_LINES)}${same && `; ${same}: no difference shown`}.`;
}

/** @param {import("./first.js").Told} told */
function movedText({ name, change, textOf, unit }) {
  const rose = change.low > 0;
  const [low, high] = rose ? [change.low, change.high] : [-change.high, -change.low];
  /** @param {number} value */
  const plain = (value) => textOf(value).replace("+", "");
  const much = plain(Math.abs(change.value));
  return `${name} ${rose ? "rose" : "fell"} by ${much}${unit} (${plain(low)} to ${plain(high)})`;
}
