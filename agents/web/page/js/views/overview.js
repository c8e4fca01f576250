// All collections on one page: which need attention, and the newest final number of each.

import { ask, collectionPath } from "../api.js";
import { element, figure, make } from "../dom.js";
import { ageText, countText, momentText, partText, spanText, windowText } from "../format.js";
import {
  MANY_REJECTED,
  nextOf,
  pastOf,
  problemWord,
  rejectedPart,
  statusOf,
  waitOf,
  whichText,
} from "../health.js";
import { nowMs } from "../shell/clock.js";
import { spark } from "../spark.js";
import { fillTable } from "../table.js";
import { drawChanged, drawPromises, drawWorker, link } from "./cards.js";
import { changeCell, listText } from "./changes.js";
import { firstOf } from "./first.js";

/** @typedef {import("../types.js").Collection} Collection */
/** @typedef {import("../types.js").WindowState} WindowState */
/** @typedef {{collection: Collection, windows: WindowState[], status: import("../types.js").Status, first: import("./first.js").First}} Known */

const NEWEST = 24;
/** @type {Record<string, [string, string, string]>} Class, singular and plural; worst first. */
const SAID = {
  Stopped: ["alarmed", "has stopped", "have stopped"],
  Problem: ["alarmed", "has a problem", "have a problem"],
  Waiting: ["alarmed", "waits for a partition", "wait for a partition"],
  Rejecting: ["open", "rejects reports", "reject reports"],
  Withheld: ["quiet", "is withheld", "are withheld"],
  Open: ["open", "has no final window yet", "have no final window yet"],
  Behind: ["quiet", "is behind the clock", "are behind the clock"],
};
const RANKS = ["Current", ...Object.keys(SAID).reverse()];

/**
 * @param {Collection[]} collections
 * @param {() => boolean} current
 */
export async function drawOverview(collections, current) {
  const known = await Promise.all(
    collections.map((collection) =>
      knownOf(collection, current).catch((error) => unknown(collection, String(error.message))),
    ),
  );
  if (current()) draw(known);
}

/**
 * @param {Collection} collection
 * @param {() => boolean} current
 * @returns {Promise<Known>}
 */
async function knownOf(collection, current) {
  const path = `${collectionPath(collection.name)}/windows?last=${NEWEST}`;
  const [{ windows }, status] = await Promise.all([ask(path), statusOf(collection.name)]);
  return { collection, windows, status, first: await firstOf(collection, windows, current) };
}

/**
 * A collection that the worker cannot answer for: the others are shown all the same.
 *
 * @param {Collection} collection
 * @param {string} problem
 * @returns {Known}
 */
function unknown(collection, problem) {
  const counts = { counted: 0, late: 0, rejected: 0, lost_offsets: 0 };
  const status = {
    ...counts,
    problems: [problem],
    stopped: false,
    ready: false,
    other_sizes: [],
    partitions: [],
  };
  const first = { newest: { said: "", bounds: "" }, points: [], changes: [] };
  return { collection, windows: [], status, first };
}

/**
 * The state in a word, with its amount and an explanation.
 *
 * @param {Known} known
 * @returns {{word: string, much?: string, said: string}}
 */
function stateOf({ collection, windows, status }) {
  if (status.problems.length) {
    return { word: problemWord(status), said: status.problems.join(" ") };
  }
  const wait = waitOf(collection, windows, status);
  if (wait) {
    const much = ageText(wait.reached - wait.due);
    return { word: "Waiting", much, said: `for ${whichText(wait, status)}` };
  }
  const part = rejectedPart(status);
  if (part >= MANY_REJECTED) return { word: "Rejecting", much: partText(part), said: "of all" };
  const final = windows.findLast((one) => one.final);
  if (!final) return { word: "Open", said: "no window is final yet" };
  const { minimum } = collection;
  if (final.n < minimum) {
    return { word: "Withheld", said: `${countText(final.n)} of ${countText(minimum)} reports` };
  }
  const past = pastOf(collection, status);
  if (past !== null) {
    const much = ageText(nowMs() - past);
    return { word: "Behind", much, said: `newest report of ${momentText(past)}` };
  }
  const next = nextOf(collection, windows);
  return { word: "Current", said: next ? `next final ${momentText(next.due)}` : "" };
}

/**
 * @param {{state: {word: string}, collection: Collection}[]} rows
 * @returns {(string | Node)[]}
 */
function sumOf(rows) {
  const count = `${countText(rows.length)} ${rows.length === 1 ? "collection" : "collections"}`;
  const parts = Object.entries(SAID).flatMap(([word, [shape, one, several]]) => {
    const names = rows.filter(({ state }) => state.word === word).map((row) => row.collection.name);
    const said = `${listText(names)} ${names.length === 1 ? one : several}`;
    return names.length ? [make("span", { className: `said ${shape}` }, said)] : [];
  });
  if (parts.length === 0) return [`${count}, all of them well.`];
  const well = rows.filter(({ state }) => !(state.word in SAID)).length;
  const last = well ? `; ${countText(well)} ${well === 1 ? "is" : "are"} well.` : ".";
  const first = make("span", { className: "how-many" }, `${count}: `);
  return [first, ...parts.flatMap((part, at) => (at ? ["; ", part] : [part])), last];
}

/** @param {(string | Node)[]} lines The first in normal size, the others in small print. */
const stacked = ([first, ...others]) =>
  make("span", {}, first, ...others.map((one) => make("small", {}, one)));

/** @param {Known[]} all */
function draw(all) {
  const rows = all
    .map((known) => ({ ...known, state: stateOf(known) }))
    .sort((a, b) => RANKS.indexOf(b.state.word) - RANKS.indexOf(a.state.word));
  const today = `${new Date(nowMs()).toISOString().slice(0, 10)} `;
  const sum = make("p", {}, ...sumOf(rows));
  const shown = element("overview-sum");
  if (shown.innerHTML !== sum.innerHTML) shown.replaceChildren(...sum.childNodes);
  fillTable(
    /** @type {HTMLTableElement} */ (element("overview-rows")),
    [
      { title: "collection", kind: "name" },
      { title: "state", kind: "words" },
      { title: "newest final window", kind: "words" },
      { title: "against the one before", kind: "words" },
      { title: `last ${NEWEST} windows, own scale`, kind: "chart" },
      { title: "reports", kind: "words" },
      { title: "ε of a report" },
    ],
    rows.map(({ collection, windows, status, state, first }) => {
      const final = windows.findLast((one) => one.final);
      const ended = final ? nowMs() - Date.parse(final.window.end) : 0;
      const [shape] = SAID[state.word] ?? ["final"];
      const badge = make("span", { className: `badge ${shape}` }, state.word);
      if (state.much) badge.append(` ${state.much}`);
      const [told] = first.changes;
      const { name, values, window, privacy } = collection;
      const size = windowText(window);
      return [
        stacked([link(name), `${countText(values)} values · ${size}`]),
        stacked([badge, state.word in SAID ? link(name, "health", state.said) : state.said]),
        final
          ? stacked([
              make("strong", {}, first.newest.said || "nothing shown"),
              first.newest.bounds,
              `${spanText(final.window).replace(today, "")}, ${ageText(ended)} ago`,
            ])
          : "none",
        told ? changeCell(told.change, told.textOf, told.unit) : "–",
        spark(first.points),
        stacked([
          make("span", {}, figure(countText(final?.n ?? 0), final?.n ?? 0), " reports"),
          make("span", {}, "late so far ", figure(countText(status.late), status.late)),
          make("span", {}, "rejected so far ", figure(countText(status.rejected), status.rejected)),
        ]),
        link(name, "privacy", privacy.epsilon),
      ];
    }),
  );
  drawChanged(rows);
  drawWorker(rows);
  drawPromises(rows);
}
