// The cumulative distribution in one ordered dimension, and its quantiles, with bounds.

import { askKept } from "../api.js";
import { boundsText, methodFor } from "../bounds.js";
import { chosen } from "../choices.js";
import { askCurve, drawCurve, evenPlaces } from "../curve.js";
import { element, say } from "../dom.js";
import { zonedSpanText } from "../format.js";
import { quantileOptions, WHOM } from "../series.js";
import { changedText, changesIn } from "./changes.js";
import { saidOf } from "./first.js";

const MOST_PLACES = 64;
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
  const { quantiles, estimand = "respondents" } = estimate;
  if (current() && !estimate.withheld) {
    say(
      element("cdf-bounds"),
      `${boundsText(estimate, `for the ${places.length} shares below together, and for all quantiles together`)} ` +
        `Band: the share of the ${WHOM[estimand]} up to a value` +
        `${places.length < size ? `, drawn between ${places.length} of them` : ""}. ` +
        "Bars across: the value of a quantile." +
        (before?.ranges.length ? ` Dashed: ${before.name}.` : ""),
    );
    drawCurve("cdf", "cumulative distribution", domain, places, estimate, before);
    const { said, bounds } = saidOf({ quantiles, estimand }, domain);
    const changed = before ? ` ${before.changed}` : "";
    say(element("cdf-sum"), said && `${said} (${bounds}).${changed}`);
  }
  return estimate;
}

/** @param {Shown} shown */
const togetherOf = ({ collection, method }) => ({
  method,
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
