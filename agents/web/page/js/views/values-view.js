// The list of values with whiskers, and the named ranges, means and quantiles of one window.

import { ask, estimatePath } from "../api.js";
import { boundsText } from "../bounds.js";
import { chosen } from "../choices.js";
import { element, say } from "../dom.js";
import { changedText, changesOf, leaderText } from "./changes.js";
import { fillEntries, fillMeans, fillQuantiles } from "../entries.js";
import { countText, labelText, spanTextUtc } from "../format.js";
import { drawPriors } from "../priors.js";
import { fillMerged, standingText } from "./merged.js";

/** @typedef {import("../types.js").Estimate} Estimate */
/** @typedef {import("../types.js").Shown} Shown */

/** @typedef {import("./changes.js").Changes} Changes */

const AREAS = "areas"; // In place of a number of values.
const DEFAULT_TOP = "20";
const MOST_VALUES_OF_AREAS = 100_000;
const MOST_COMPARED = 1000; // Values: all are fetched for both windows.

/**
 * Whether a worker answers with areas: not where a value has several distributions of reports.
 *
 * @param {Shown["collection"]} collection
 */
export const offersAreas = ({ mechanism, values }) =>
  mechanism !== "lip" && values <= MOST_VALUES_OF_AREAS;

/** @param {string} id */
const tableOf = (id) => /** @type {HTMLTableElement} */ (element(id));

/** @type {import("../types.js").View} */
export const valuesView = { id: "values", fits: () => true, compares, update };

/** @param {Shown["collection"]} collection */
function compares(collection) {
  return collection.values <= MOST_COMPARED && !showsAreas(collection);
}

/** @param {Shown["collection"]} collection */
const showsAreas = (collection) => chosen("top") === AREAS && offersAreas(collection);

/**
 * @param {Shown} shown
 * @param {() => boolean} current
 * @returns {Promise<Estimate>}
 */
async function update({ collection, window, compared, method }, current) {
  const merged = showsAreas(collection);
  const top = (chosen("top") !== AREAS && chosen("top")) || DEFAULT_TOP;
  /** @type {[string, string][]} */
  const asked = [
    ["top", merged ? "0" : top],
    ["simultaneous", "true"],
    ["method", method],
  ];
  if (merged) asked.push(["areas", "true"]);
  const path = estimatePath(collection.name, window.window, asked);
  /** @type {[Estimate, Changes | null]} */
  const [estimate, changes] = await Promise.all([
    ask(path),
    compared ? changesOf(collection, window, compared, method) : null,
  ]);
  if (current() && !estimate.withheld) draw(estimate, collection, changes, compared);
  return estimate;
}

/**
 * @param {Estimate} estimate
 * @param {Shown["collection"]} collection
 * @param {Changes | null} changes
 * @param {Shown["compared"]} compared
 */
function draw(estimate, collection, changes, compared) {
  const { distribution = [], ranges = [], linear = [], quantiles = [], areas, final } = estimate;
  say(
    element("values-sum"),
    areas
      ? standingText(areas.entries)
      : [leaderText(distribution, collection), changedText(changes)].join(" ").trim(),
  );
  const all = areas ? `${countText(areas.family)} areas that could have been shown` : "values";
  say(
    element("bounds"),
    `${boundsText(estimate, `for all ${all} together`)} Estimates are unbiased and not clipped, ` +
      "so they can be below 0 or, where values are in blocks, above the exact share of their block." +
      (changes && compared
        ? ` Changes since ${spanTextUtc(compared.window)} are in points, and its bounds grey; ` +
          "those of the changes hold for all values together too. “No difference shown” is no proof that there is none."
        : ""),
  );
  const table = tableOf("value-rows");
  if (areas) fillMerged(table, areas.entries, final);
  else
    fillEntries(
      table,
      "value",
      distribution.map((entry) => ({ name: labelText(entry.value, collection.domain), entry })),
      final,
      changes,
    );
  element("ranges").hidden = ranges.length === 0;
  const named = ranges.map((entry) => ({ name: entry.name, entry }));
  fillEntries(tableOf("range-rows"), "range", named, final);
  element("linear").hidden = linear.length === 0;
  fillMeans(tableOf("linear-rows"), linear, final);
  element("quantiles").hidden = quantiles.length === 0;
  fillQuantiles(tableOf("quantile-rows"), quantiles, collection.domain);
  drawPriors(estimate);
}
