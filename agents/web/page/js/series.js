// The series over windows: ranges, quantiles, means and values.

import { numberOf } from "./axis.js";
import { labelText } from "./format.js";

/** @typedef {import("./types.js").Estimate} Estimate */
/** @typedef {import("./types.js").Label} Label */
/** @typedef {import("./types.js").WindowState} WindowState */

/**
 * @typedef {object} Point
 * @property {WindowState} window
 * @property {number | null} middle
 * @property {number | null} low
 * @property {number | null} high
 * @property {Label[]} labels The three if they are labels, as in the document; else empty.
 * @property {string[]} texts The same as texts.
 */
/**
 * @typedef {object} Series
 * @property {string} kind "range", "quantile", "mean" or "value".
 * @property {string} title
 * @property {boolean} share
 * @property {string} unit The axis's unit; series with the same unit share a scale.
 * @property {Point[]} points
 */

/** @param {number} p */
export const quantileTitle = (p) => `Quantile ${p}`;

/** @type {Record<string, string>} */
const UNITS = {
  respondents: "share of reports",
  population: "share of population",
  active: "share of active devices",
};
const QUANTILES = [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95];
const MOST_VALUES_OF_QUANTILES = 4096;
export const MOST_LINES = 4;
export const MOST_VALUES_LISTED = 200;

/**
 * The quantiles that all views ask for, as options: one family, so that each has the same bounds
 * wherever it is shown.
 *
 * @param {import("./types.js").Collection} collection
 * @returns {[string, string][]}
 */
export function quantileOptions({ domain, quantiles, values }) {
  if (!domain.ordered || domain.shape.length > 1) return [];
  const few = values <= MOST_VALUES_OF_QUANTILES ? QUANTILES : [];
  return (quantiles.length ? quantiles : few).map((p) => ["quantile", String(p)]);
}

/**
 * @param {WindowState} window
 * @param {import("./bars.js").Bar | undefined} entry
 * @returns {Point}
 */
function pointOf(window, entry) {
  const { share = null, low = null, high = null } = entry ?? {};
  return { window, middle: share, low, high, labels: [], texts: [] };
}

/**
 * Return the series of the windows' estimates, in the order of the newest one. Values are only
 * shown if they are labels: for numbers, ranges, quantiles and means say more.
 *
 * @param {import("./types.js").Collection} collection
 * @param {WindowState[]} windows
 * @param {Estimate[]} estimates One per window.
 * @param {string[]} names Of the values to show.
 * @returns {Series[]}
 */
export function seriesOf(collection, windows, estimates, names) {
  const newest = estimates.findLast((one) => !one.withheld);
  const unit = UNITS[newest?.estimand ?? "respondents"];
  const ranges = (newest?.ranges ?? []).map(({ name }) => ({
    kind: "range",
    title: name,
    share: true,
    unit,
    points: windows.map((window, at) =>
      pointOf(
        window,
        estimates[at].ranges?.find((one) => one.name === name),
      ),
    ),
  }));
  const quantiles = (newest?.quantiles ?? []).map(({ p }) => ({
    kind: "quantile",
    title: quantileTitle(p),
    share: false,
    unit: "value",
    points: windows.map((window, at) => {
      const found = estimates[at].quantiles?.find((one) => one.p === p);
      return quantilePoint(window, found, collection.domain);
    }),
  }));
  const means = (newest?.linear ?? []).map(({ name }) => ({
    kind: "mean",
    title: `Mean ${name}`,
    share: false,
    unit: `mean ${name}`,
    points: windows.map((window, at) => {
      const found = estimates[at].linear?.find((one) => one.name === name);
      return pointOf(window, found && { ...found, share: found.mean });
    }),
  }));
  const values = collection.domain.ordered
    ? []
    : valueSeries(collection.domain, windows, estimates, names, unit);
  return [...ranges, ...quantiles, ...means, ...values];
}

/**
 * The series with these titles, in their order; titles that no series has are values.
 *
 * @param {import("./types.js").Collection} collection
 * @param {WindowState[]} windows
 * @param {Estimate[]} estimates One per window.
 * @param {string[]} titles
 */
export function titled(collection, windows, estimates, titles) {
  const all = seriesOf(collection, windows, estimates, titles);
  return titles.flatMap((title) => all.find((one) => one.title === title) ?? []);
}

/**
 * The ends of the scale that all lines of a chart share: all bounds, and of shares 0.
 *
 * @param {Series[]} series
 * @returns {[number, number]}
 */
export function extentOf(series) {
  const ends = series
    .flatMap(({ share, points }) => [
      share ? 0 : null,
      ...points.flatMap(({ low, middle, high }) => [low, middle, high]),
    ])
    .filter((end) => end !== null);
  if (ends.length === 0) return [0, 1];
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const room = (high - low || Math.abs(high) || 1) / 20;
  return [low === 0 ? 0 : low - room, high + room];
}

/**
 * The lines to show unless others are picked: ranges, else quantiles, else the labels that led in
 * the first final window, else means. Not by the newest window, which would make lines come and go.
 *
 * @param {import("./types.js").Collection} collection
 * @param {Estimate[]} estimates Oldest first.
 * @param {Series[]} series
 */
export function defaultLines({ domain }, estimates, series) {
  const first = estimates.find((one) => one.final && !one.withheld);
  const leaders = leadersOf(first ? [first] : estimates, domain);
  for (const kind of ["range", "quantile", "value", "mean"]) {
    const titles = series.filter((one) => one.kind === kind).map(({ title }) => title);
    const names = kind === "value" ? leaders.filter((name) => titles.includes(name)) : titles;
    if (names.length) return names.slice(0, MOST_LINES);
  }
  return [];
}

/**
 * @param {WindowState} window
 * @param {import("./types.js").QuantileEntry | undefined} found
 * @param {import("./types.js").Domain} domain
 * @returns {Point}
 */
function quantilePoint(window, found, domain) {
  if (!found) return { window, middle: null, low: null, high: null, labels: [], texts: [] };
  const { value, low, high } = found;
  return {
    window,
    middle: numberOf(value, "middle"),
    low: numberOf(low, "low"),
    high: numberOf(high, "high"),
    labels: [value, low, high],
    texts: [value, low, high].map((one) => labelText(one, domain)),
  };
}

/**
 * The labels with the largest shares over all final windows, or over all windows if none is final.
 *
 * @param {Estimate[]} estimates
 * @param {import("./types.js").Domain} domain
 * @returns {string[]}
 */
export function leadersOf(estimates, domain) {
  const finals = estimates.filter((one) => one.final && !one.withheld);
  /** @type {Map<string, number>} */
  const sums = new Map();
  for (const { distribution = [] } of finals.length ? finals : estimates) {
    for (const { value, share } of distribution) {
      const name = labelText(value, domain);
      sums.set(name, (sums.get(name) ?? 0) + (share ?? 0));
    }
  }
  const sorted = [...sums].sort(([, a], [, b]) => b - a).slice(0, MOST_LINES);
  return sorted.map(([name]) => name);
}

/** @type {WeakMap<Estimate, Map<string, import("./types.js").ValueEntry>>} */
const known = new WeakMap();

/**
 * The entries of an estimate by the text of their label, made once: most windows are final.
 *
 * @param {Estimate} estimate
 * @param {import("./types.js").Domain} domain
 */
function entriesOf(estimate, domain) {
  const { distribution = [] } = estimate;
  const made =
    known.get(estimate) ?? new Map(distribution.map((one) => [labelText(one.value, domain), one]));
  known.set(estimate, made);
  return made;
}

/**
 * @param {import("./types.js").Domain} domain
 * @param {WindowState[]} windows
 * @param {Estimate[]} estimates
 * @param {string[]} names
 * @param {string} unit
 * @returns {Series[]}
 */
function valueSeries(domain, windows, estimates, names, unit) {
  const found = estimates.map((estimate) => entriesOf(estimate, domain));
  return names.map((name) => ({
    kind: "value",
    title: name,
    share: true,
    unit,
    points: windows.map((window, at) => pointOf(window, found[at].get(name))),
  }));
}
