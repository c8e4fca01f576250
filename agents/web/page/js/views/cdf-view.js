// The cumulative distribution in one ordered dimension, and its quantiles, with bounds.

import { boundsText, methodFor } from "../bounds.js";
import { chosen } from "../choices.js";
import { askCurve, drawCurve, placesOf } from "../curve.js";
import { element, say } from "../dom.js";
import { spanText } from "../format.js";
import { seriesOf } from "../series.js";
import { halfError } from "./changes.js";
import { changeOf, saidOf } from "./first.js";
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
  compares: () => true,
  update,
};

/**
 * @param {Shown} shown
 * @param {() => boolean} current
 * @returns {Promise<Estimate>}
 */
async function update(shown, current) {
  const { collection } = shown;
  const { domain } = collection;
  const [size] = domain.shape;
  const places = placesOf(size, Math.min(MOST_PLACES, Math.floor(MOST_WORK / size)));
  const quantiles = size <= MOST_VALUES_OF_QUANTILES ? QUANTILES : [];
  const [estimate, before] = await Promise.all([
    askCurve(shown, places, quantiles, togetherOf(shown)),
    beforeOf(shown, places, quantiles),
  ]);
  if (current() && !estimate.withheld) {
    say(
      element("cdf-bounds"),
      `${boundsText(estimate, `for the ${places.length} shares below together, and for all quantiles together`)} ` +
        "Band: the share of reports up to a value" +
        `${places.length < size ? `, drawn between ${places.length} of them` : ""}. ` +
        "Bars across: the value of a quantile." +
        (before
          ? ` Dashed: ${before.name} UTC.` +
            (quantiles.length
              ? " Changes are since then; their bounds hold for all quantiles together, too."
              : "")
          : ""),
    );
    drawCurve("cdf", "cumulative distribution", domain, places, estimate, false, before);
    say(element("cdf-sum"), halfText(estimate, domain));
  }
  await updateLikelihood(shown, quantiles, current);
  return estimate;
}

/** @param {Shown} shown @returns {[string, string][]} */
const togetherOf = ({ method }) => [
  ["method", method === "profile" ? "padded" : method], // Profile bounds are not simultaneous.
  ["simultaneous", "true"],
];

/**
 * The curve of the compared window, and how quantiles have changed since: for the changes each
 * window gets half of the error, so that the bounds of both hold at once.
 *
 * @param {Shown} shown
 * @param {number[]} places
 * @param {string[]} quantiles
 * @returns {Promise<import("../curve.js").Before | null>}
 */
async function beforeOf(shown, places, quantiles) {
  const { collection, window, compared } = shown;
  if (!compared) return null;
  const method = methodFor(collection, compared, chosen("method"));
  const then = { ...shown, window: compared, method };
  /** @param {Shown} one @returns {Promise<Estimate>} */
  const half = (one) =>
    askCurve(one, [], quantiles, [...togetherOf(one), ["confidence", halfError(collection)]]);
  const [curve, ...both] = await Promise.all([
    askCurve(then, places, [], togetherOf(then)),
    ...(quantiles.length ? [half(then), half(shown)] : []),
  ]);
  if (curve.withheld) return null;
  const lines = both.length ? seriesOf(collection, [compared, window], both, []) : [];
  const changes = lines.filter(({ kind }) => kind === "quantile").flatMap(changeOf);
  return { name: spanText(compared.window), ranges: curve.ranges ?? [], changes };
}

/** @param {Estimate} estimate @param {import("../types.js").Domain} domain */
function halfText({ quantiles = [] }, domain) {
  const half = quantiles.find(({ p, value }) => p === 0.5 && value !== null);
  const { said, bounds } = saidOf({ quantiles: half ? [half] : [] }, domain);
  return said && `${said} (${bounds}).`;
}
