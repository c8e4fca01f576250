// The cards of the overview: what has changed, the worker's progress, and the promises.

import { element, figure, fillPairs, make, say } from "../dom.js";
import { clockText, countText, tickText, titleOf } from "../format.js";
import { waitOf } from "../health.js";
import { fillTable } from "../table.js";
import { changeCell, isShown, listText } from "./changes.js";

/** @typedef {import("./overview.js").Known} Known */

const MOST_LISTED = 6;
const RATE_MS = 60_000; // The rate is an average over this time, because reports come in bursts.

/** @param {string} name Of a collection. @param {string} [view] @param {string} [text] */
export const link = (name, view, text = name) =>
  make(
    "a",
    { href: `#collection=${encodeURIComponent(name)}${view ? `&view=${view}` : ""}` },
    text,
  );

/** @param {Known[]} all */
export function drawChanged(all) {
  const told = all.flatMap(({ collection, first }) =>
    first.changes.map((one) => ({ ...one, collection })),
  );
  const changed = told.filter(({ change }) => isShown(change));
  element("changed-rows").hidden = changed.length === 0;
  fillTable(
    "changed-rows",
    [
      { title: "collection", kind: "name" },
      { title: "what", kind: "words" },
      { title: "change", kind: "change" },
    ],
    changed
      .slice(0, MOST_LISTED)
      .map(({ collection, name, change, textOf, unit }) => [
        link(collection.name, "", titleOf(collection)),
        name,
        changeCell(change, textOf, unit),
      ]),
  );
  const more = changed.length - MOST_LISTED;
  const rest = told.length - changed.length;
  const others = changed.length ? "the other" : "any of";
  say(
    element("changed-rest"),
    told.length === 0
      ? "No collection has two final windows to compare."
      : `${more > 0 ? `${countText(more)} more have changed. ` : ""}` +
          (rest ? `No difference is shown for ${others} ${countText(rest)}. ` : "") +
          "Bounds hold for all of a collection together.",
  );
}

/** @type {{time: number, counted: Map<string, number>}[]} The newest last. */
let looks = [];

/**
 * Reports per second, over the collections that existed at an earlier look.
 *
 * @param {Known[]} all
 */
function rateText(all) {
  const time = Date.now();
  const counted = new Map(all.map(({ collection, status }) => [collection.name, status.counted]));
  looks = [...looks.filter((look) => time - look.time <= RATE_MS), { time, counted }];
  const [first] = looks;
  const seconds = (time - first.time) / 1000;
  if (seconds < 1) return "not known yet";
  let sum = 0;
  // A collection that is counted again, as after `ldpstream reset`, starts at 0.
  for (const [name, now] of counted) sum += Math.max(0, now - (first.counted.get(name) ?? now));
  const rate = sum / seconds;
  return `${rate < 10 ? tickText(rate, "", 2) : countText(rate)} reports/s`;
}

/** @param {Known[]} all */
export function drawWorker(all) {
  const partitions = all.flatMap(({ collection, status }) =>
    status.partitions.map((one) => ({ ...one, name: titleOf(collection) })),
  );
  const owned = partitions.filter((one) => one.owned);
  const lag = owned.reduce((sum, one) => sum + (one.lag ?? 0), 0);
  const [oldest] = partitions
    .filter(({ watermark, idle }) => watermark !== null && !idle)
    .sort((a, b) => Date.parse(a.watermark ?? "") - Date.parse(b.watermark ?? ""));
  const waits = all.some(({ collection, windows, status }) => waitOf(collection, windows, status));
  const reached = oldest
    ? `${clockText(oldest.watermark ?? "")}, ${oldest.name} ${oldest.partition}`
    : "all are idle";
  fillPairs("worker", [
    ["counted now", rateText(all)],
    ["to read", make("span", {}, figure(countText(lag), lag), " messages")],
    ["oldest watermark", make("span", { className: waits ? "alarm" : "" }, reached)],
    ["partitions of this worker", `${countText(owned.length)} of ${countText(partitions.length)}`],
  ]);
}

/** @param {Known[]} all */
export function drawPromises(all) {
  const collections = all.map(({ collection }) => collection);
  const whole = collections.filter(({ privacy }) => privacy.unprotected === null);
  const others = collections.filter(({ privacy }) => privacy.unprotected !== null);
  const names = whole.length ? `: ${listText(whole.map(titleOf))}` : "";
  const more = others.length - MOST_LISTED;
  say(
    element("promises-sum"),
    `${countText(whole.length)} of ${countText(all.length)} protect all values${names}.` +
      (more > 0 ? ` The first ${MOST_LISTED} of ${countText(others.length)} others:` : ""),
  );
  element("promises").replaceChildren(
    ...others
      .slice(0, MOST_LISTED)
      .map(({ name, title, privacy }) =>
        make(
          "li",
          {},
          link(name, "privacy", title ?? name),
          ` does not protect ${privacy.unprotected}`,
        ),
      ),
  );
}
