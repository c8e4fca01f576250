// The sentence of the view over time: which lines rose or fell from the first final window to the
// last.

import { clockText } from "../format.js";
import { MOST_LINES } from "../series.js";
import { askChange, changesIn, isShown, listText } from "./changes.js";

/**
 * @param {Collection} collection
 * @param {Spot[]} spots Oldest first.
 * @param {string[]} titles Of the lines that are drawn.
 */
export async function courseText(collection, spots, titles) {
  const finals = spots.filter(({ final, withheld }) => final && !withheld);
  const [first, last] = [finals.at(0)?.window, finals.at(-1)?.window];
  if (!first || !last) return "No final window has numbers yet.";
  const since = `Since ${clockText(first.start)}`;
  if (Date.parse(last.start) < Date.parse(first.end))
    return `${since} no other final window has numbers: nothing to compare yet.`;
  if (titles.length === 0) return "";
  const answer = await askChange(collection, last, first, collection.method);
  if (answer.withheld) return `${since} nothing is compared: ${answer.reason}.`;
  const told = changesIn(answer, collection).filter(({ name }) => titles.includes(name));
  const moved = told.filter(({ change }) => isShown(change)).map(movedText);
  const others = told.filter(({ change }) => !isShown(change)).map(({ name }) => name);
  const same = listText(others, MOST_LINES);
  if (moved.length === 0) return same && `${since}: no difference shown for ${same}.`;
  return `${since} ${listText(moved, MOST_LINES)}${same && `; ${same}: no difference shown`}.`;
}

/** @param {Told} told */
function movedText({ name, change, textOf, unit }) {
  const rose = change.low > 0;
  const [low, high] = rose ? [change.low, change.high] : [-change.high, -change.low];
  /** @param {number} value */
  const plain = (value) => textOf(value).replace("+", "");
  const much = plain(Math.abs(change.value));
  return `${name} ${rose ? "rose" : "fell"} by ${much}${unit} (${plain(low)} to ${plain(high)})`;
}
