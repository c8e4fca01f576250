// Cumulative shares and quantiles, as a curve with bounds and as tables.

import { ask, estimatePath } from "./api.js";
import { axisTitle, labelOf, numberOf, rangeUpTo, upperEnd } from "./axis.js";
import { drawChart, markChart, nearest, valueAt } from "./charts/charts.js";
import { element, figure } from "./dom.js";
import { fillQuantiles } from "./entries.js";
import {
  decimalsFor,
  labelText,
  partText,
  percentText,
  quantileTexts,
  tickText,
  valueText,
} from "./format.js";
import { fillTable } from "./table.js";
import { along, pointAt } from "./charts/tooltip.js";

/** @typedef {{title: string, x: number[], ranges: RangeEntry[], quantiles: QuantileEntry[], domain: Domain, before: Before | null}} Curve */
/** @typedef {{name: string, ranges: RangeEntry[], changed: string}} Before Another window, and what changed since. */

const TALL = 360; // Pixels.

/** @type {Map<HTMLElement, Curve>} */
const curves = new Map();

/**
 * Return at most `most` evenly spaced values, including the domain's last.
 *
 * @param {number} size
 * @param {number} most
 */
export function evenPlaces(size, most) {
  const count = Math.max(1, Math.min(size, most));
  return Array.from({ length: count }, (_, i) => Math.round(((i + 1) * size) / count) - 1);
}

/**
 * Return a window's estimates of the ranges up to `places`, with `more` options.
 *
 * @param {Shown} shown
 * @param {number[]} places
 * @param {Options} more
 * @param {typeof ask} [asking]
 * @returns {Promise<Estimate>}
 */
export function askCurve({ collection, window }, places, more, asking = ask) {
  const { name, domain } = collection;
  const range = places.map((place) => rangeUpTo(domain, place));
  return asking(estimatePath(name, window.window, { top: 0, ...more, range }));
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
 * @param {Before | null} [before]
 */
export function drawCurve(name, title, domain, places, estimate, before = null) {
  const { ranges = [], quantiles = [], final } = estimate;
  /** @param {number | null} share */
  const hundred = (share) => (share === null ? null : 100 * share);
  const host = element(`${name}-chart`);
  const x = places.map((place) => upperEnd(domain, 0, place));
  drawChart(host, {
    x,
    lines: [
      ...(before ? [dashed(before.ranges.map(({ share }) => hundred(share)))] : []),
      {
        colour: "mark",
        middle: ranges.map(({ share }) => hundred(share)),
        low: ranges.map(({ low }) => hundred(low)),
        high: ranges.map(({ high }) => hundred(high)),
      },
    ],
    yText: (value) => tickText(value, "%"),
    height: TALL,
    xTitle: axisTitle(domain, 0),
    yTitle: "share up to it",
    across: quantiles.flatMap((one) =>
      whiskerOf(one).map((whisker) => ({ ...whisker, label: saidOf(one), open: !final })),
    ),
    extent: [0, 100],
  });
  host.setAttribute("role", "application");
  host.setAttribute(
    "aria-label",
    `Chart of the ${title}: arrow keys move from value to value; its numbers are in the tables below`,
  );
  const decimals = decimalsFor(ranges);
  /** @param {number | null} share */
  const percent = (share) => figure(percentText(share, decimals), share);
  fillTable(
    `${name}-rows`,
    [{ title: "up to", kind: "name" }, { title: "share" }, { title: "low" }, { title: "high" }],
    ranges.map(({ share, low, high }, at) => [
      labelText(labelOf(domain, 0, places[at]), domain),
      percent(share),
      percent(low),
      percent(high),
    ]),
  );
  fillQuantiles(`${name}-quantile-rows`, quantiles, domain);
  curves.set(host, { title, x, ranges, quantiles, domain, before });
  pointAt(host, pointedOf(host, x));
}

/** @param {number} value @returns {Tip} Of all curves that are shown. */
function tipOf(value) {
  const shown = [...curves].filter(([host]) => host.offsetParent).map(([, curve]) => curve);
  const rows = shown.flatMap(({ title, x, ranges, quantiles, domain, before }, place) => {
    const at = nearest(x, value);
    /** @param {RangeEntry} entry */
    const written = ({ share, low, high }) =>
      [share, low, high].map((one) => percentText(one, decimalsFor(ranges)));
    const [said, ...bounds] = written(ranges[at]);
    const [then, ...its] = before?.ranges[at] ? written(before.ranges[at]) : [];
    const of = place ? `, ${title}` : "";
    const up = { name: `up to ${valueText(x[at])}${of}`, value: said };
    const around = quantiles.filter((one) =>
      whiskerOf(one).some((whisker) => whisker.low <= x[at] && x[at] <= whisker.high),
    );
    return [
      { ...up, bounds: [bounds.join(" to ")] },
      ...(then ? [{ name: `${before?.name}`, value: then, bounds: [its.join(" to ")] }] : []),
      ...around.map(({ p, value: where, low, high }) => ({
        name: `${partText(p)} up to${of}`,
        value: labelText(where, domain),
        bounds: [`${labelText(low, domain)} to ${labelText(high, domain)}`],
      })),
    ];
  });
  return { title: `Value ${valueText(value)}`, rows };
}

/**
 * The cursor of one curve is that of all.
 *
 * @param {HTMLElement} host
 * @param {number[]} x
 * @returns {Pointed<number>}
 */
function pointedOf(host, x) {
  return {
    at: ({ clientX }) => {
      const value = valueAt(host, clientX);
      return value === null ? null : x[nearest(x, value)];
    },
    move: (value, key) => along(x, value, key),
    mark: (value) => {
      for (const other of curves.keys()) if (other !== host) markChart(other, value);
      return markChart(host, value);
    },
    tip: tipOf,
  };
}

/** @param {(number | null)[]} middle @returns {Line} */
const dashed = (middle) => ({ colour: "before", dashed: true, middle, low: [], high: [] });

/** @param {QuantileEntry} quantile */
function saidOf(quantile) {
  const [at, bounds] = quantileTexts(quantile);
  return `${partText(quantile.p)} up to ${at.replace(" or less", "")} (${bounds})`;
}

/** @param {QuantileEntry} quantile */
function whiskerOf({ p, value, low, high }) {
  const ends = [numberOf(low, "low"), numberOf(value, "high"), numberOf(high, "high")];
  if (ends.some((end) => end === null)) return [];
  const [from, middle, to] = /** @type {number[]} */ (ends);
  return [{ y: 100 * p, low: from, middle, high: to }];
}
