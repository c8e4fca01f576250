// The curve of largest likelihood that is still smooth, and the bounds that likelihood gives.

import { ask, estimatePath } from "./api.js";
import { labelOf, numberOf, rangeUpTo, upperEnd } from "./axis.js";
import { boundsText } from "./bounds.js";
import { drawBand } from "./charts.js";
import { element, figure, say } from "./dom.js";
import { fillQuantiles } from "./entries.js";
import { decimalsFor, labelText, percentText, tickText } from "./format.js";
import { fillTable } from "./table.js";

/** @typedef {import("./types.js").Domain} Domain */
/** @typedef {import("./types.js").Estimate} Estimate */
/** @typedef {import("./types.js").QuantileEntry} QuantileEntry */
/** @typedef {import("./types.js").Shown} Shown */

const MOST_PLACES = 24; // The bounds of each take the worker some 20 ms.

/**
 * Ask for the curve of a closed window, and draw it; hide it elsewhere: its bounds hold at one
 * moment, and not where somebody watches.
 *
 * @param {Shown} shown
 * @param {string[]} quantiles
 * @param {() => boolean} current
 */
export async function updateLikelihood({ collection, window, method }, quantiles, current) {
  const card = element("likelihood");
  if (!collection.likelihood || !window.final) {
    card.hidden = true;
    return;
  }
  const { domain } = collection;
  const places = placesOf(domain.shape[0]);
  /** @type {Estimate} */
  const estimate = await ask(
    estimatePath(collection.name, window.window, [
      ["top", "0"],
      ["project", "likelihood"],
      ["method", method === "profile-exact" ? method : "profile"],
      .../** @type {[string, string][]} */ (
        places.map((place) => ["range", rangeUpTo(domain, place)])
      ),
      .../** @type {[string, string][]} */ (quantiles.map((p) => ["quantile", p])),
    ]),
  );
  if (!current()) return;
  card.hidden = Boolean(estimate.withheld);
  if (!estimate.withheld) draw(domain, places, estimate);
}

/**
 * Return evenly spread values, the last of them the domain's.
 *
 * @param {number} size
 */
function placesOf(size) {
  const count = Math.min(size, MOST_PLACES);
  return Array.from({ length: count }, (_, i) => Math.round(((i + 1) * size) / count) - 1);
}

/**
 * @param {Domain} domain
 * @param {number[]} places
 * @param {Estimate} estimate
 */
function draw(domain, places, estimate) {
  const { ranges = [], quantiles = [] } = estimate;
  say(
    element("likelihood-bounds"),
    "The smoothest shares that the reports do not contradict: biased, and there to be looked at; " +
      "the numbers above are unbiased. " +
      `${boundsText(estimate, "for each share and each quantile by itself")} ` +
      "Thresholds of method profile are calibrated on known data, not proved; those of " +
      "profile-exact are proved.",
  );
  /** @param {number | null} share */
  const hundred = (share) => (share === null ? null : 100 * share);
  drawBand(element("likelihood-chart"), {
    x: places.map((place) => upperEnd(domain, 0, place)),
    middle: ranges.map(({ share }) => hundred(share)),
    low: ranges.map(({ low }) => hundred(low)),
    high: ranges.map(({ high }) => hundred(high)),
    final: ranges.map(() => true),
    time: false,
    dots: false,
    yText: (value) => tickText(value, "%"),
    label: "Chart of the likelihood curve; its numbers are in the tables below",
    height: 320,
    across: quantiles.flatMap(whiskerOf),
  });
  const decimals = decimalsFor(ranges);
  /** @param {number | null} share */
  const percent = (share) => figure(percentText(share, decimals), share);
  fillTable(
    /** @type {HTMLTableElement} */ (element("likelihood-rows")),
    [
      { title: "up to", kind: "name" },
      { title: "share" },
      { title: "low" },
      { title: "high" },
      { title: "bounds by", kind: "more" },
    ],
    ranges.map(({ share, low, high, bound }, at) => [
      labelText(labelOf(domain, 0, places[at])),
      percent(share),
      percent(low),
      percent(high),
      bound ?? "",
    ]),
  );
  fillQuantiles(/** @type {HTMLTableElement} */ (element("likelihood-quantile-rows")), quantiles);
}

/** @param {QuantileEntry} quantile */
export function whiskerOf({ p, value, low, high }) {
  const ends = [numberOf(low, "low"), numberOf(value, "middle"), numberOf(high, "high")];
  if (ends.some((end) => end === null)) return [];
  const [from, middle, to] = /** @type {number[]} */ (ends);
  return [{ y: 100 * p, low: from, middle, high: to }];
}
