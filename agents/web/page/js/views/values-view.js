// The list of values with whiskers, and the named ranges, means and quantiles of one window.

import { ask, askKept, estimatePath } from "../api.js";
import { boundsText } from "../bounds.js";
import { addressOf, adjust, choose, chosen } from "../choices.js";
import { element, make, say, select } from "../dom.js";
import { changedText, changesIn, leaderText } from "./changes.js";
import { fillEntries, fillMeans, fillQuantiles } from "../entries.js";
import { countText, labelText, nameText, tickText } from "../format.js";
import { drawPriors } from "../priors.js";
import { MOST_VALUES_LISTED, quantileOptions } from "../series.js";
import { saidOf } from "./first.js";
import { fillMerged, mergedText } from "./merged.js";

const AREAS = "areas"; // In place of a number of values.
const MOST_VALUES_OF_AREAS = 100_000;
const MOST_COMPARED = 1000; // Values: with more, those of the compared window are not drawn.
const NAMES = new Intl.Collator("en", { numeric: true });
const MOST_SEARCHED = 10_000; // Values: all are fetched.
const MOST_FOUND = 1000; // Values that are listed.

/**
 * Whether a worker answers with areas: not where a value has several distributions of reports.
 *
 * @param {Shown["collection"]} collection
 */
export const offersAreas = ({ mechanism, values }) =>
  mechanism !== "lip" && values <= MOST_VALUES_OF_AREAS;

/** @type {View} */
export const valuesView = {
  id: "values",
  fits: () => true,
  compares: (collection) => !showsAreas(collection),
  update,
};

/** @param {Shown["collection"]} collection */
const showsAreas = (collection) => chosen("top") === AREAS && offersAreas(collection);

/** @param {Shown} shown @param {() => boolean} current @returns {Promise<Estimate>} */
async function update({ collection, windows, window, compared, change, method }, current) {
  const merged = showsAreas(collection);
  const top = (chosen("top") !== AREAS && chosen("top")) || defaultTop(collection);
  if (!merged) select("top").value = top;
  const field = /** @type {HTMLInputElement} */ (element("search"));
  field.hidden = merged || collection.values > MOST_SEARCHED;
  if (field !== document.activeElement) field.value = chosen("search");
  const common = { simultaneous: true, method, ...quantileOptions(collection) };
  const searched = merged || collection.values > MOST_SEARCHED ? "" : chosen("search");
  const own = merged ? { top: 0, areas: true } : { top: searched ? "all" : top };
  const newest = windows.findLast((one) => one.final);
  /** @param {WindowState} one @param {Options} options */
  const pathOf = (one, options) =>
    estimatePath(collection.name, one.window, { ...options, ...common });
  /** @type {[Estimate, Estimate | null, ChangeAnswer | null, Estimate | null]} */
  const [estimate, then, answer, alone] = await Promise.all([
    ask(pathOf(window, own)),
    compared && collection.values <= MOST_COMPARED
      ? askKept(pathOf(compared, { top: "all" }))
      : null,
    change,
    window.period && newest ? ask(pathOf(newest, own)) : null,
  ]);
  if (current() && !estimate.withheld) draw(estimate, collection, then, answer, alone);
  return estimate;
}

/**
 * @param {Estimate} estimate
 * @param {Shown["collection"]} collection
 * @param {Estimate | null} then Of the compared window.
 * @param {ChangeAnswer | null} answer
 * @param {Estimate | null} alone Of the newest window, if a period is shown.
 */
function draw(estimate, collection, then, answer, alone) {
  const { ranges = [], linear = [], quantiles = [], areas, final, estimand } = estimate;
  const { domain } = collection;
  const listed = [...(estimate.distribution ?? [])];
  // Ordered values are read in their order, whatever has the most noise.
  if (domain.ordered) listed.sort((a, b) => orderOf(a.value, b.value));
  const told = answer && !answer.withheld ? changesIn(answer, collection) : [];
  /** @param {{value?: Label, name?: string}} entry */
  const nameOf = ({ value, name }) =>
    name === undefined ? labelText(value ?? null, domain) : nameText(name);
  const before = new Map(
    [...(then?.distribution ?? []), ...(then?.ranges ?? [])].map((one) => [nameOf(one), one]),
  );
  const changes = told.length
    ? new Map(told.map(({ name, change }) => [name, { ...change, was: before.get(name) }]))
    : null;
  const median = saidOf({ quantiles, estimand }, domain);
  const first = median.said ? `${median.said} (${median.bounds}).` : leaderText(listed, collection);
  say(
    element("values-sum"),
    areas ? mergedText(areas.entries) : [first, changedText(answer, told)].join(" ").trim(),
  );
  const all = areas ? `${countText(areas.family)} areas that could have been shown` : "values";
  say(
    element("bounds"),
    boundsText(estimate, `for all ${all} together`) + gainText(estimate, alone),
  );
  say(element("forged-note"), forgeryText(estimate));
  const table = "value-rows";
  const searched = chosen("search").toLowerCase();
  const rows = listed
    .map((entry) => ({ name: nameOf(entry), entry }))
    .filter(({ name }) => name.toLowerCase().includes(searched))
    .sort(ordersOf(changes)[chosen("sort")] ?? (() => 0))
    .slice(0, MOST_FOUND);
  const lines = !domain.ordered && collection.values <= MOST_VALUES_LISTED;
  if (areas) fillMerged(table, areas.entries, final);
  else fillEntries(table, "value", rows, final, changes, lines ? overTime : undefined);
  for (const button of element(table).querySelectorAll("[data-sort]")) {
    const mine = /** @type {HTMLElement} */ (button).dataset.sort === chosen("sort");
    button.setAttribute("aria-pressed", String(mine));
  }
  element("ranges").hidden = ranges.length === 0;
  const named = ranges.map((entry) => ({ name: nameOf(entry), entry }));
  fillEntries("range-rows", "range", named, final, changes);
  element("linear").hidden = linear.length === 0;
  fillMeans("linear-rows", linear, final);
  element("quantiles").hidden = quantiles.length === 0;
  fillQuantiles("quantile-rows", quantiles, domain);
  drawPriors(estimate, domain);
}

/** @param {Estimate} whole Of a period. @param {Estimate | null} alone Of one of its windows. */
function gainText(whole, alone) {
  const [all, one] = [whole, alone].map((each) => {
    const widths = (each?.distribution ?? []).map(({ low, high }) => (high ?? 0) - (low ?? 0));
    return widths.sort((a, b) => a - b)[Math.floor(widths.length / 2)];
  });
  if (!all || !one) return "";
  const [now, then] = [all, one].map((width) => tickText(50 * width, "", 2));
  return ` Bounds are some ±${now} points, and ±${then} of the newest window alone.`;
}

/** @param {Estimate} estimate What forged reports can do to any of its shares. */
const forgeryText = ({ influence = null, forged = null }) =>
  influence === null || forged === null
    ? ""
    : `One forged report moves a share by at most ${tickText(100 * influence, "", 2)} points; ` +
      `${countText(forged)} could move one beyond its bounds.`;

/** @typedef {{name: string, entry: ValueEntry}} Row */

/**
 * What rows can be sorted by.
 *
 * @param {Map<string, {value: number}> | null} changes
 * @returns {Record<string, (a: Row, b: Row) => number>}
 */
function ordersOf(changes) {
  /** @param {Row} row */
  const moved = ({ name }) => Math.abs(changes?.get(name)?.value ?? 0);
  return {
    value: (a, b) => orderOf(a.entry.value, b.entry.value) || NAMES.compare(a.name, b.name),
    share: (a, b) => (b.entry.share ?? 0) - (a.entry.share ?? 0),
    change: (a, b) => moved(b) - moved(a),
  };
}

/** @param {string} name Leads to the course of a value. */
const overTime = (name) =>
  make("a", { href: addressOf({ view: "time", lines: JSON.stringify([name]) }) }, name);

/**
 * Search among all values, by what their names contain, and sort by a column's head.
 *
 * @param {() => void} changed
 */
export function startSearch(changed) {
  const field = /** @type {HTMLInputElement} */ (element("search"));
  field.addEventListener("input", () => {
    adjust({ search: field.value.trim() });
    changed();
  });
  element("value-rows").addEventListener("click", ({ target }) => {
    const by = /** @type {HTMLElement} */ (target).dataset.sort;
    if (!by) return;
    choose({ sort: by === chosen("sort") ? "" : by });
    changed();
  });
}

/** @param {Shown["collection"]} collection */
const defaultTop = ({ domain, values }) =>
  domain.ordered && values <= MOST_VALUES_LISTED ? "all" : "20";

/** @param {Label} a @param {Label} b @returns {number} */
function orderOf(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (!Array.isArray(a) || !Array.isArray(b)) return 0;
  for (const [at, one] of a.entries()) {
    const differs = orderOf(one, b[at]);
    if (differs) return differs;
  }
  return 0;
}
