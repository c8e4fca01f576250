// The cumulative distribution of an ordered line, with bands, and its quantiles with theirs.

import { ask, estimatePath } from "./api.js";
import { labelOf, rangeUpTo, upperEnd } from "./axis.js";
import { boundsText } from "./bounds.js";
import { drawBand, restyleCharts } from "./charts.js";
import { element, figure, say } from "./dom.js";
import { fillQuantiles } from "./entries.js";
import { decimalsFor, labelText, percentText, tickText } from "./format.js";
import { updateLikelihood, whiskerOf } from "./likelihood.js";
import { fillTable } from "./table.js";

/** @typedef {import("./types.js").Domain} Domain */
/** @typedef {import("./types.js").Estimate} Estimate */
/** @typedef {import("./types.js").Shown} Shown */

const MOST_PLACES = 64;
const MOST_WORK = 20_000_000; // Ranges times values that the worker computes for one answer.
const QUANTILES = ["0.05", "0.1", "0.25", "0.5", "0.75", "0.9", "0.95"];
const MOST_VALUES_OF_QUANTILES = 4096;

/** @type {import("./types.js").View} */
export const cdfView = {
  id: "cumulative",
  fits: ({ domain }) => domain.ordered && domain.shape.length === 1,
  update,
  restyle: restyleCharts,
};

/**
 * Return the values whose shares below are asked for: all, or evenly spread ones with the last.
 *
 * @param {number} size
 */
function placesOf(size) {
  const count = Math.max(1, Math.min(size, MOST_PLACES, Math.floor(MOST_WORK / size)));
  return Array.from({ length: count }, (_, i) => Math.round(((i + 1) * size) / count) - 1);
}

/**
 * @param {Shown} shown
 * @param {() => boolean} current
 * @returns {Promise<Estimate>}
 */
async function update(shown, current) {
  const { collection, window, method } = shown;
  const { domain } = collection;
  const places = placesOf(domain.shape[0]);
  const quantiles = domain.shape[0] <= MOST_VALUES_OF_QUANTILES ? QUANTILES : [];
  /** @type {Estimate} */
  const estimate = await ask(
    estimatePath(collection.name, window.window, [
      ["top", "0"],
      ["method", method === "profile" ? "padded" : method], // Profiles do not hold together.
      ["simultaneous", "true"],
      .../** @type {[string, string][]} */ (
        places.map((place) => ["range", rangeUpTo(domain, place)])
      ),
      .../** @type {[string, string][]} */ (quantiles.map((p) => ["quantile", p])),
    ]),
  );
  if (current() && !estimate.withheld) draw(domain, places, estimate);
  await updateLikelihood(shown, quantiles, current);
  return estimate;
}

/**
 * @param {Domain} domain
 * @param {number[]} places
 * @param {Estimate} estimate
 */
function draw(domain, places, estimate) {
  const { ranges = [], quantiles = [] } = estimate;
  say(
    element("cdf-bounds"),
    `${boundsText(estimate, `for the ${places.length} shares below together, and for all quantiles together`)} ` +
      "Band: the share of reports up to a value" +
      `${places.length < domain.shape[0] ? `, drawn between ${places.length} of them` : ""}. ` +
      "Bars across: the value of a quantile.",
  );
  /** @param {number | null} share */
  const hundred = (share) => (share === null ? null : 100 * share);
  drawBand(element("cdf-chart"), {
    x: places.map((place) => upperEnd(domain, 0, place)),
    middle: ranges.map(({ share }) => hundred(share)),
    low: ranges.map(({ low }) => hundred(low)),
    high: ranges.map(({ high }) => hundred(high)),
    final: ranges.map(() => true),
    time: false,
    dots: false,
    yText: (value) => tickText(value, "%"),
    label: "Chart of the cumulative distribution; its numbers are in the tables below",
    height: 320,
    across: quantiles.flatMap(whiskerOf),
  });
  const decimals = decimalsFor(ranges);
  /** @param {number | null} share */
  const percent = (share) => figure(percentText(share, decimals), share);
  fillTable(
    /** @type {HTMLTableElement} */ (element("cdf-rows")),
    [{ title: "up to", kind: "name" }, { title: "share" }, { title: "low" }, { title: "high" }],
    ranges.map(({ share, low, high }, at) => [
      labelText(labelOf(domain, 0, places[at])),
      percent(share),
      percent(low),
      percent(high),
    ]),
  );
  fillQuantiles(/** @type {HTMLTableElement} */ (element("cdf-quantile-rows")), quantiles);
}
