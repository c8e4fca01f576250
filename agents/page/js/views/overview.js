// All collections on one page: which needs attention, and of each its newest final number.

import { ask, collectionPath } from "../api.js";
import { element, figure, make, say } from "../dom.js";
import { ageText, countText, durationText, partText, spanText } from "../format.js";
import { MANY_REJECTED, rejectedPart, statusOf, waitsFor } from "../health.js";
import { spark } from "../spark.js";
import { fillTable } from "../table.js";
import { changeCell, listText } from "./changes.js";
import { firstOf } from "./first.js";

/** @typedef {import("../types.js").Collection} Collection */
/** @typedef {import("../types.js").WindowState} WindowState */
/** @typedef {{collection: Collection, windows: WindowState[], status: import("../types.js").Status, first: import("./first.js").First}} Known */

const NEWEST = 24;
/** @type {Record<string, [string, string]>} Of one collection, and of several; worst first. */
const SAID = {
  Stopped: ["has stopped", "have stopped"],
  Waiting: ["waits for a partition", "wait for a partition"],
  Rejecting: ["rejects reports", "reject reports"],
  Withheld: ["is withheld", "are withheld"],
  Open: ["has no final window yet", "have no final window yet"],
};

/** @type {import("../types.js").View} Of no collection: drawn by `drawOverview`. */
export const overviewView = { id: "overview", fits: () => true, update: async () => null };

/**
 * @param {Collection[]} collections
 * @param {() => boolean} current
 */
export async function drawOverview(collections, current) {
  const known = await Promise.all(
    collections.map(async (collection) => {
      const path = `${collectionPath(collection.name)}/windows?last=${NEWEST}`;
      const [{ windows }, status] = await Promise.all([ask(path), statusOf(collection.name)]);
      return { collection, windows, status, first: await firstOf(collection, windows, current) };
    }),
  );
  if (current()) draw(known);
}

/**
 * What needs attention: how much, in a word, and in a sentence.
 *
 * @param {Known} known
 * @returns {{rank: number, word: string, said: string}}
 */
function stateOf({ collection, windows, status }) {
  if (status.problems.length) return { rank: 3, word: "Stopped", said: status.problems.join(" ") };
  const waits = windows.map((one) => waitsFor(collection, one, status)).find((said) => said);
  if (waits) return { rank: 2, word: "Waiting", said: waits };
  const part = rejectedPart(status);
  if (part >= MANY_REJECTED)
    return { rank: 2, word: "Rejecting", said: `${partText(part)} of all` };
  const final = windows.findLast((one) => one.final);
  if (!final) return { rank: 1, word: "Open", said: "no window is final yet" };
  const { minimum } = collection;
  return final.n < minimum
    ? { rank: 1, word: "Withheld", said: `${countText(final.n)} of ${countText(minimum)} reports` }
    : { rank: 0, word: "Current", said: "" };
}

/** @param {{state: {word: string}, collection: Collection}[]} rows */
function sumText(rows) {
  const count = `${countText(rows.length)} ${rows.length === 1 ? "collection" : "collections"}`;
  const parts = Object.entries(SAID).flatMap(([word, [one, several]]) => {
    const names = rows.filter(({ state }) => state.word === word).map((row) => row.collection.name);
    return names.length ? [`${listText(names)} ${names.length === 1 ? one : several}`] : [];
  });
  if (parts.length === 0) return `${count}, all of them well.`;
  const well = rows.filter(({ state }) => !(state.word in SAID)).length;
  if (well) parts.push(`${countText(well)} ${well === 1 ? "is" : "are"} well`);
  return `${count}: ${parts.join("; ")}.`;
}

/** @param {(string | Node)[]} lines The first as it is, the others in small print. */
const stacked = ([first, ...others]) =>
  make("span", {}, first, ...others.map((one) => make("small", {}, one)));

/** @param {Known[]} all */
function draw(all) {
  const rows = all
    .map((known) => ({ ...known, state: stateOf(known) }))
    .sort((a, b) => b.state.rank - a.state.rank);
  say(element("overview-sum"), sumText(rows));
  fillTable(
    /** @type {HTMLTableElement} */ (element("overview-rows")),
    [
      { title: "collection", kind: "name" },
      { title: "state", kind: "words" },
      { title: "newest final window", kind: "words" },
      { title: "against the one before", kind: "words" },
      { title: `last ${NEWEST} windows, own scale`, kind: "chart" },
      { title: "reports", kind: "words" },
    ],
    rows.map(({ collection, windows, status, state, first }) => {
      const final = windows.findLast((one) => one.final);
      const ended = final ? Date.now() - Date.parse(final.window.end) : 0;
      const shape = ["final", "open", "alarmed", "alarmed"][state.rank];
      const { name, values, window } = collection;
      const size = durationText(window.size_ms);
      return [
        stacked([
          make("a", { href: `#collection=${encodeURIComponent(name)}` }, name),
          `${countText(values)} values · ${size}`,
        ]),
        stacked([make("span", { className: `badge ${shape}` }, state.word), state.said]),
        final
          ? stacked([
              make("strong", {}, first.newest.said || "nothing shown"),
              first.newest.bounds,
              `${spanText(final.window)}, ended ${ageText(ended)} ago`,
            ])
          : "none",
        first.change ? changeCell(first.change, first.textOf, first.unit) : "–",
        spark(first.points),
        stacked([
          make("span", {}, figure(countText(final?.n ?? 0), final?.n ?? 0), " reports"),
          make("span", {}, "late so far ", figure(countText(status.late), status.late)),
          make("span", {}, "rejected so far ", figure(countText(status.rejected), status.rejected)),
        ]),
      ];
    }),
  );
}
