// The cumulative distribution in one ordered dimension, and its quantiles, with bounds; and the
// smoothest curve of high likelihood.

import { askKept } from "../api.js";
import { boundsText, methodFor } from "../bounds.js";
import { chosen } from "../choices.js";
import { askCurve, drawCurve, evenPlaces } from "../curve.js";
import { element, say } from "../dom.js";
import { zonedSpanText } from "../format.js";
import { quantileOptions } from "../series.js";
import { changedText, changesIn } from "./changes.js";
import { saidOf } from "./first.js";

const MOST_PLACES = 64;
const MOST_BY_LIKELIHOOD = 24; // Places: the bounds of each take the worker some 20 ms.
const MOST_WORK = 20_000_000; // Ranges times values that the worker allows in one answer.

/** @type {View} */
export const cdfView = {
  id: "cumulative",
  fits: ({ domain }) => domain.ordered && domain.shape.length === 1,
  compares: () => true,
  update,
};

/** @param {Shown} shown @param {() => boolean} current @returns {Promise<Estimate>} */
async function update(shown, current) {
  const { collection } = shown;
  const { domain } = collection;
  const [size] = domain.shape;
  const places = evenPlaces(size, Math.min(MOST_PLACES, Math.floor(MOST_WORK / size)));
  const [estimate, before] = await Promise.all([
    askCurve(shown, places, togetherOf(shown)),
    beforeOf(shown, places),
  ]);
  if (current() && !estimate.withheld) {
    say(
      element("cdf-bounds"),
      `${boundsText(estimate, `for the ${places.length} shares below together, and for all quantiles together`)} ` +
        "Band: the share of reports up to a value" +
        `${places.length < size ? `, drawn between ${places.length} of them` : ""}. ` +
        "Bars across: the value of a quantile." +
        (before?.ranges.length ? ` Dashed: ${before.name}.` : ""),
    );
    drawCurve("cdf", "cumulative distribution", domain, places, estimate, before);
    const { said, bounds } = saidOf({ quantiles: estimate.quantiles }, domain);
    const changed = before ? ` ${before.changed}` : "";
    say(element("cdf-sum"), said && `${said} (${bounds}).${changed}`);
  }
  return estimate;
}

/** @param {Shown} shown */
const togetherOf = ({ collection, method }) => ({
  method: method === "profile" ? "padded" : method, // Profile bounds are not simultaneous.
  simultaneous: true,
  ...quantileOptions(collection),
});

/**
 * The curve of the compared window, and in a sentence what has changed since.
 *
 * @param {Shown} shown
 * @param {number[]} places
 */
async function beforeOf(shown, places) {
  const { collection, compared } = shown;
  if (!compared) return null;
  const method = methodFor(collection, compared, chosen("method"));
  const then = { ...shown, window: compared, method };
  const [curve, answer] = await Promise.all([
    askCurve(then, places, togetherOf(then), askKept),
    shown.change,
  ]);
  const changed = changedText(answer, answer ? changesIn(answer, collection) : []);
  return { name: zonedSpanText(compared.window), ranges: curve?.ranges ?? [], changed };
}

/**
 * Fetch and draw the curve of a closed window; hide it for others, because its bounds hold at one
 * moment only, and an open window is watched.
 *
 * @param {Shown} shown
 * @param {() => boolean} current
 */
async function updateLikelihood(shown, current) {
  const { collection, window, method } = shown;
  const card = element("likelihood");
  if (!collection.likelihood || !window.final) {
    card.hidden = true;
    return;
  }
  const { domain } = collection;
  const places = evenPlaces(domain.shape[0], MOST_BY_LIKELIHOOD);
  const estimate = await askCurve(shown, places, {
    ...quantileOptions(collection),
    project: "likelihood",
    method: method === "profile-exact" ? method : "profile",
  });
  if (!current()) return;
  card.hidden = Boolean(estimate.withheld);
  if (estimate.withheld) return;
  say(
    element("likelihood-bounds"),
    "The smoothest shares that the reports do not contradict: a biased picture of the shape; " +
      "the numbers above are unbiased. " +
      `${boundsText(estimate, "for each share and each quantile by itself")} ` +
      "Thresholds of method profile are calibrated on known data, not proved; those of " +
      "profile-exact are proved.",
  );
  drawCurve("likelihood", "likelihood curve", domain, places, estimate, true);
}
