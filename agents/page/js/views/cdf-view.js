// The cumulative distribution in one ordered dimension, and its quantiles, with bounds.

import { boundsText } from "../bounds.js";
import { restyleCharts } from "../charts/charts.js";
import { askCurve, drawCurve, placesOf } from "../curve.js";
import { element, say } from "../dom.js";
import { saidOf } from "./first.js";
import { updateLikelihood } from "./likelihood.js";

/** @typedef {import("../types.js").Estimate} Estimate */
/** @typedef {import("../types.js").Shown} Shown */

const MOST_PLACES = 64;
const MOST_WORK = 20_000_000; // Ranges times values that the worker allows in one answer.
const QUANTILES = ["0.05", "0.1", "0.25", "0.5", "0.75", "0.9", "0.95"];
const MOST_VALUES_OF_QUANTILES = 4096;

/** @type {import("../types.js").View} */
export const cdfView = {
  id: "cumulative",
  fits: ({ domain }) => domain.ordered && domain.shape.length === 1,
  update,
  restyle: restyleCharts,
};

/**
 * @param {Shown} shown
 * @param {() => boolean} current
 * @returns {Promise<Estimate>}
 */
async function update(shown, current) {
  const { collection, method } = shown;
  const { domain } = collection;
  const [size] = domain.shape;
  const places = placesOf(size, Math.min(MOST_PLACES, Math.floor(MOST_WORK / size)));
  const quantiles = size <= MOST_VALUES_OF_QUANTILES ? QUANTILES : [];
  const estimate = await askCurve(shown, places, quantiles, [
    ["method", method === "profile" ? "padded" : method], // Profile bounds are not simultaneous.
    ["simultaneous", "true"],
  ]);
  if (current() && !estimate.withheld) {
    say(
      element("cdf-bounds"),
      `${boundsText(estimate, `for the ${places.length} shares below together, and for all quantiles together`)} ` +
        "Band: the share of reports up to a value" +
        `${places.length < size ? `, drawn between ${places.length} of them` : ""}. ` +
        "Bars across: the value of a quantile.",
    );
    drawCurve("cdf", "cumulative distribution", domain, places, estimate);
    say(element("cdf-sum"), halfText(estimate, domain));
  }
  await updateLikelihood(shown, quantiles, current);
  return estimate;
}

/** @param {Estimate} estimate @param {import("../types.js").Domain} domain */
function halfText({ quantiles = [] }, domain) {
  const half = quantiles.find(({ p, value }) => p === 0.5 && value !== null);
  const { said, bounds } = saidOf({ quantiles: half ? [half] : [] }, domain);
  return said && `${said} (${bounds}).`;
}
