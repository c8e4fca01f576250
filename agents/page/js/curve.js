// Cumulative shares and quantiles, as a curve with bounds and as tables.

import { ask, estimatePath } from "./api.js";
import { labelOf, numberOf, rangeUpTo, upperEnd } from "./axis.js";
import { drawBand } from "./charts.js";
import { element, figure } from "./dom.js";
import { fillQuantiles } from "./entries.js";
import { decimalsFor, labelText, percentText, tickText } from "./format.js";
import { fillTable } from "./table.js";

/** @typedef {import("./types.js").Domain} Domain */
/** @typedef {import("./types.js").Estimate} Estimate */
/** @typedef {import("./types.js").QuantileEntry} QuantileEntry */
/** @typedef {import("./types.js").Shown} Shown */

/**
 * Return at most `most` evenly spaced values, including the domain's last.
 *
 * @param {number} size
 * @param {number} most
 */
export function placesOf(size, most) {
  const count = Math.max(1, Math.min(size, most));
  return Array.from({ length: count }, (_, i) => Math.round(((i + 1) * size) / count) - 1);
}

/**
 * Return a window's estimates of the ranges up to `places` and of quantiles, with `more` options.
 *
 * @param {Shown} shown
 * @param {number[]} places
 * @param {string[]} quantiles
 * @param {[string, string][]} more
 * @returns {Promise<Estimate>}
 */
export function askCurve({ collection, window }, places, quantiles, more) {
  const { name, domain } = collection;
  /** @type {[string, string][]} */
  const ranges = places.map((place) => ["range", rangeUpTo(domain, place)]);
  /** @type {[string, string][]} */
  const asked = quantiles.map((p) => ["quantile", p]);
  return ask(estimatePath(name, window.window, [["top", "0"], ...more, ...ranges, ...asked]));
}

/**
 * Draw the ranges up to `places` and the quantiles of an estimate into the elements
 * `NAME-chart`, `NAME-rows` and `NAME-quantile-rows`.
 *
 * @param {string} name
 * @param {string} title
 * @param {Domain} domain
 * @param {number[]} places
 * @param {Estimate} estimate
 * @param {boolean} [bounded] Whether to show how each range was bounded.
 */
export function drawCurve(name, title, domain, places, estimate, bounded = false) {
  const { ranges = [], quantiles = [] } = estimate;
  /** @param {number | null} share */
  const hundred = (share) => (share === null ? null : 100 * share);
  drawBand(element(`${name}-chart`), {
    x: places.map((place) => upperEnd(domain, 0, place)),
    middle: ranges.map(({ share }) => hundred(share)),
    low: ranges.map(({ low }) => hundred(low)),
    high: ranges.map(({ high }) => hundred(high)),
    final: ranges.map(() => true),
    time: false,
    dots: false,
    yText: (value) => tickText(value, "%"),
    label: `Chart of the ${title}; its numbers are in the tables below`,
    height: 320,
    xTitle: "value",
    yTitle: "share up to it",
    across: quantiles.flatMap(whiskerOf),
    extent: hundredOrMore(ranges),
  });
  const decimals = decimalsFor(ranges);
  /** @param {number | null} share */
  const percent = (share) => figure(percentText(share, decimals), share);
  fillTable(
    /** @type {HTMLTableElement} */ (element(`${name}-rows`)),
    [
      { title: "up to", kind: "name" },
      { title: "share" },
      { title: "low" },
      { title: "high" },
      ...(bounded ? [{ title: "bounds by", kind: /** @type {const} */ ("more") }] : []),
    ],
    ranges.map(({ share, low, high, bound }, at) => [
      labelText(labelOf(domain, 0, places[at]), domain),
      percent(share),
      percent(low),
      percent(high),
      ...(bounded ? [bound ?? ""] : []),
    ]),
  );
  fillQuantiles(
    /** @type {HTMLTableElement} */ (element(`${name}-quantile-rows`)),
    quantiles,
    domain,
  );
}

/**
 * From 0 to 100%, and as far beyond as unbiased shares go.
 *
 * @param {import("./types.js").Entry[]} ranges
 * @returns {[number, number]}
 */
function hundredOrMore(ranges) {
  const ends = ranges.flatMap(({ share, low, high }) => [share ?? 0, low ?? 0, high ?? 0]);
  return [100 * Math.min(0, ...ends), 100 * Math.max(1, ...ends)];
}

/** @param {QuantileEntry} quantile */
function whiskerOf({ p, value, low, high }) {
  const ends = [numberOf(low, "low"), numberOf(value, "middle"), numberOf(high, "high")];
  if (ends.some((end) => end === null)) return [];
  const [from, middle, to] = /** @type {number[]} */ (ends);
  return [{ y: 100 * p, low: from, middle, high: to }];
}
