// All collections on one page: which need attention, and the newest final number of each.

import { ask, collectionPath } from "../api.js";
import { element, figure, make } from "../dom.js";
import { ageText, countText, dayText, spanText, titleOf, windowText } from "../format.js";
import { nowMs } from "../shell/clock.js";
import { spark } from "../spark.js";
import { chipOf, stateOf, STATES } from "../state.js";
import { fillTable } from "../table.js";
import { drawChanged, drawPromises, drawWorker, link } from "./cards.js";
import { changeCell, listText } from "./changes.js";
import { firstOf } from "./first.js";

/** @typedef {{collection: Collection, windows: WindowState[], status: Status, first: First}} Known */

const NEWEST = 24;
const RANKS = ["Current", ...Object.keys(STATES).reverse()];

/**
 * One request for all collections, and one for each whose shard is another worker's.
 *
 * @param {Collection[]} collections
 * @param {() => boolean} current
 */
export async function drawOverview(collections, current) {
  const options = `last=${NEWEST}&published=true&headline=true&status=true`;
  /** @type {{series: SeriesAnswer[], elsewhere: string[], problems: Record<string, string>}} */
  const { series, elsewhere, problems } = await ask(`api/series?${options}`);
  const answers = new Map(series.map((one) => [one.collection, one]));
  const known = await Promise.all(
    collections.map(async (collection) => {
      const { name } = collection;
      const path = `${collectionPath(name)}/series?${options}`;
      try {
        const answer = elsewhere.includes(name) ? await ask(path) : answers.get(name);
        const { status, windows = [] } = answer ?? {};
        if (!answer || !status) return unknown(collection, problems[name] ?? "it is not answered");
        return { collection, windows, status, first: firstOf(collection, answer) };
      } catch (error) {
        return unknown(collection, /** @type {Error} */ (error).message);
      }
    }),
  );
  if (current()) draw(known);
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
  const first = { newest: { said: "", bounds: "" }, points: [], own: null, changes: [] };
  return { collection, windows: [], status, first };
}

/** @param {{state: {word: string}, collection: Collection}[]} rows @returns {(string | Node)[]} */
function sumOf(rows) {
  const count = `${countText(rows.length)} ${rows.length === 1 ? "collection" : "collections"}`;
  const parts = Object.entries(STATES).flatMap(([word, [shape, one, several]]) => {
    const names = rows
      .filter(({ state }) => state.word === word)
      .map((row) => titleOf(row.collection));
    const said = `${listText(names)} ${names.length === 1 ? one : several}`;
    return names.length ? [make("span", { className: `said ${shape}` }, said)] : [];
  });
  if (parts.length === 0) return [`${count}, all of them well.`];
  const well = rows.filter(({ state }) => !(state.word in STATES)).length;
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
  const today = `${dayText(nowMs())}, `;
  const sum = make("p", {}, ...sumOf(rows));
  const shown = element("overview-sum");
  if (shown.innerHTML !== sum.innerHTML) shown.replaceChildren(...sum.childNodes);
  fillTable(
    "overview-rows",
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
      const { own } = first;
      const { name, values, window, privacy } = collection;
      const size = windowText(window);
      return [
        stacked([link(name, "", titleOf(collection)), `${countText(values)} values · ${size}`]),
        stacked([
          chipOf(state),
          state.word in STATES ? link(name, "health", state.said) : state.said,
        ]),
        final
          ? stacked([
              make("strong", {}, first.newest.said || "nothing shown"),
              first.newest.bounds,
              `${spanText(final.window).replace(today, "")}, ${ageText(ended)} ago`,
            ])
          : "none",
        own ? changeCell(own.change, own.textOf, own.unit) : "–",
        state.word === "Withheld" ? make("div", { className: "hatched" }) : spark(first.points),
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
