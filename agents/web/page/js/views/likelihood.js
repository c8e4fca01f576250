// The smoothest curve of high likelihood, and the bounds from the likelihood.

import { boundsText } from "../bounds.js";
import { askCurve, drawCurve, evenPlaces } from "../curve.js";
import { element, say } from "../dom.js";
import { quantileOptions } from "../series.js";

/** @typedef {import("../types.js").Shown} Shown */

const MOST_PLACES = 24; // The bounds of each take the worker some 20 ms.

/**
 * Fetch and draw the curve of a closed window; hide it for others, because its bounds hold at one
 * moment only, and an open window is watched.
 *
 * @param {Shown} shown
 * @param {() => boolean} current
 */
export async function updateLikelihood(shown, current) {
  const { collection, window, method } = shown;
  const card = element("likelihood");
  if (!collection.likelihood || !window.final) {
    card.hidden = true;
    return;
  }
  const { domain } = collection;
  const places = evenPlaces(domain.shape[0], MOST_PLACES);
  const estimate = await askCurve(shown, places, [
    ...quantileOptions(collection),
    ["project", "likelihood"],
    ["method", method === "profile-exact" ? method : "profile"],
  ]);
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
