// All collections on one page: which needs attention, and how old its newest final window is.

import { ask, collectionPath } from "../api.js";
import { element, figure, make, say } from "../dom.js";
import { ageText, countText, partText, spanText } from "../format.js";
import { MANY_REJECTED, rejectedPart, statusOf, waitsFor } from "../health.js";
import { estimatesOf } from "../history.js";
import { fillTable } from "../table.js";
import { firstText } from "./course.js";

/** @typedef {import("../types.js").Collection} Collection */
/** @typedef {import("../types.js").WindowState} WindowState */
/** @typedef {{collection: Collection, windows: WindowState[], status: import("../types.js").Status, said: string}} Known */

const NEWEST = 20;
/** @type {[string, string][]} Bounds of a share that is listed for being the largest hold together. */
const LEADER = [["top", "1"]];

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
      const final = windows.findLast((/** @type {WindowState} */ one) => one.final);
      const [estimate] = final ? await estimatesOf(collection, [final], LEADER, current) : [];
      return { collection, windows, status, said: estimate ? firstText(estimate) : "" };
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

/** @param {Known[]} all */
function draw(all) {
  const rows = all
    .map((known) => ({ ...known, state: stateOf(known) }))
    .sort((a, b) => b.state.rank - a.state.rank);
  const calls = rows
    .filter(({ state }) => state.rank >= 2)
    .map(({ collection }) => collection.name);
  const count = `${countText(rows.length)} ${rows.length === 1 ? "collection" : "collections"}`;
  say(
    element("overview-sum"),
    calls.length ? `${count}: look at ${calls.join(", ")}.` : `${count}, all of them well.`,
  );
  fillTable(
    /** @type {HTMLTableElement} */ (element("overview-rows")),
    [
      { title: "collection", kind: "name" },
      { title: "state" },
      { title: "first number" },
      { title: "newest final" },
      { title: "reports" },
      { title: "late" },
      { title: "rejected so far" },
    ],
    rows.map(({ collection, windows, status, state, said }) => {
      const final = windows.findLast((one) => one.final);
      const ended = final ? Date.now() - Date.parse(final.window.end) : 0;
      const shape = ["open", "open", "alarmed", "alarmed"][state.rank];
      return [
        make("a", { href: `#collection=${encodeURIComponent(collection.name)}` }, collection.name),
        make(
          "span",
          {},
          make("span", { className: `badge ${state.rank ? shape : "final"}` }, state.word),
          make("small", {}, state.said),
        ),
        said || "–",
        final
          ? make(
              "span",
              {},
              spanText(final.window),
              make("small", {}, `ended ${ageText(ended)} ago`),
            )
          : "none",
        figure(countText(final?.n ?? 0), final?.n ?? 0),
        figure(countText(status.late), status.late),
        figure(countText(status.rejected), status.rejected),
      ];
    }),
  );
}
