// The list of values with whiskers, the named ranges, means and quantiles of one window.

import { ask, estimatePath } from "./api.js";
import { boundsText } from "./bounds.js";
import { chosen } from "./choices.js";
import { element, say } from "./dom.js";
import { fillEntries, fillMeans, fillQuantiles } from "./entries.js";
import { labelText } from "./format.js";
import { drawPriors } from "./priors.js";

/** @typedef {import("./types.js").Estimate} Estimate */
/** @typedef {import("./types.js").Shown} Shown */

const DEFAULT_TOP = "20";

/** @param {string} id */
const tableOf = (id) => /** @type {HTMLTableElement} */ (element(id));

/** @type {import("./types.js").View} */
export const valuesView = { id: "values", fits: () => true, update };

/**
 * @param {Shown} shown
 * @param {() => boolean} current
 * @returns {Promise<Estimate>}
 */
async function update({ collection, window, method }, current) {
  const top = chosen("top") || DEFAULT_TOP;
  const path = estimatePath(collection.name, window.window, [
    ["top", top],
    ["method", method],
  ]);
  /** @type {Estimate} */
  const estimate = await ask(path);
  if (current() && !estimate.withheld) draw(estimate);
  return estimate;
}

/** @param {Estimate} estimate */
function draw(estimate) {
  const { distribution = [], ranges = [], linear = [], quantiles = [], final } = estimate;
  const together = estimate.simultaneous ? "for all values together" : "for each value by itself";
  say(
    element("bounds"),
    `${boundsText(estimate, together)} Estimates are unbiased and not clipped, so small ones can ` +
      "be below 0.",
  );
  fillEntries(
    tableOf("value-rows"),
    "value",
    distribution.map((entry) => ({ name: labelText(entry.value), entry })),
    final,
  );
  element("ranges").hidden = ranges.length === 0;
  const named = ranges.map((entry) => ({ name: entry.name, entry }));
  fillEntries(tableOf("range-rows"), "range", named, final);
  element("linear").hidden = linear.length === 0;
  fillMeans(tableOf("linear-rows"), linear, final);
  element("quantiles").hidden = quantiles.length === 0;
  fillQuantiles(tableOf("quantile-rows"), quantiles);
  drawPriors(estimate);
}
