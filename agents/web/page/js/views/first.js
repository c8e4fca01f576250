// The headline number of a collection, its course, and what has changed.

import { decimalsFor, labelText, meanText, percentText } from "../format.js";
import { pointsText, quantileTexts, tickText } from "../format.js";
import { estimatesOf } from "../history.js";
import { leadersOf, MOST_VALUES_LISTED, seriesOf } from "../series.js";
import { halfError, within } from "./changes.js";

/** @typedef {import("../types.js").Collection} Collection */
/** @typedef {import("../types.js").Estimate} Estimate */
/** @typedef {import("../types.js").WindowState} WindowState */
/** @typedef {import("../series.js").Series} Series */
/** @typedef {import("./changes.js").Change} Change */
/** @typedef {{said: string, bounds: string}} Said */
/** @typedef {{name: string, change: Change, textOf: (difference: number) => string, unit: string}} Told */
/**
 * @typedef {object} First
 * @property {Said} newest In the newest final window; empty if nothing is shown of it.
 * @property {import("../series.js").Point[]} points In all final windows.
 * @property {Told[]} changes Since the final window before, with simultaneous bounds; the number's
 *   own comes first.
 */

const MOST_FOLLOWED = 100_000; // Values: with more, each window takes a worker a while.
const NOTHING = { said: "", bounds: "" };

/**
 * Fetch the headline number. Among labels it is the one that leads over all final windows, because
 * the newest alone would name another each time. Its bounds are simultaneous with all others'.
 *
 * @param {Collection} collection
 * @param {WindowState[]} windows Oldest first.
 * @param {() => boolean} current
 * @returns {Promise<First>}
 */
export async function firstOf(collection, windows, current) {
  const { domain, values, ranges, quantiles, linear } = collection;
  const listed = !domain.ordered && values <= MOST_VALUES_LISTED;
  const named = ranges.length + quantiles.length + linear.length > 0;
  const followed = listed || (named && values <= MOST_FOLLOWED);
  const finals = windows.filter(({ final }) => final).slice(followed ? 0 : -1);
  /** @type {[string, string][]} */
  const asked = [
    ["top", listed ? "all" : "1"],
    ["simultaneous", String(listed)],
  ];
  const estimates = await estimatesOf(collection, finals, asked, current);
  const newest = estimates[estimates.length - 1];
  /** @type {First} */
  const first = { newest: NOTHING, points: [], changes: [] };
  if (!current() || !newest) return first;
  const [name] = listed ? leadersOf(estimates, domain) : [];
  const leader = newest.distribution?.filter(
    ({ value }) => !name || labelText(value, domain) === name,
  );
  if (!newest.withheld) first.newest = saidOf({ ...newest, distribution: leader }, domain, true);
  if (!followed) return first;
  first.points = linesOf(collection, finals, estimates, [name])[0]?.points ?? [];
  const two = finals.slice(-2);
  if (two.length < 2) return first;
  asked.push(["confidence", halfError(collection)]);
  const half = await estimatesOf(collection, two, asked, current);
  if (!current()) return first;
  const labels = (half[1].distribution ?? []).map(({ value }) => labelText(value, domain));
  const lines = linesOf(collection, two, half, [name, ...labels.filter((one) => one !== name)]);
  first.changes = (listed ? lines : lines.slice(0, 1)).flatMap(changeOf);
  return first;
}

/**
 * @param {Series} line Two windows, each with bounds for half of the error.
 * @returns {Told[]} Empty if nothing is known.
 */
export function changeOf({ title, share, points: [then, now] }) {
  if (then.low === null || then.high === null || then.middle === null) return [];
  if (now.low === null || now.high === null || now.middle === null) return [];
  const change = {
    value: now.middle - then.middle,
    low: now.low - then.high,
    high: now.high - then.low,
  };
  const decimals = decimalsFor([change]);
  /** @param {number} value */
  const textOf = (value) =>
    share ? pointsText(value, decimals) : `${value > 0 ? "+" : ""}${tickText(value, "", 3)}`;
  return [{ name: title, change, textOf, unit: share ? " points" : "" }];
}

/**
 * The series of the kind that `saidOf` chooses, that of its number first.
 *
 * @param {Collection} collection
 * @param {WindowState[]} windows
 * @param {Estimate[]} estimates
 * @param {string[]} names Of labels.
 */
function linesOf(collection, windows, estimates, names) {
  const all = seriesOf(collection, windows, estimates, names);
  for (const kind of ["quantile", "range", "value", "mean"]) {
    const lines = all.filter((one) => one.kind === kind);
    const middle = kind === "quantile" ? Math.floor(lines.length / 2) : 0;
    if (lines.length) return [...lines.slice(middle), ...lines.slice(0, middle)];
  }
  return [];
}

/**
 * The headline number and its bounds: a quantile, a range, the largest share or a mean.
 *
 * @param {Pick<Estimate, "ranges" | "quantiles" | "linear" | "distribution">} estimate
 * @param {import("../types.js").Domain} domain
 * @param {boolean} [brief] A name instead of a sentence.
 * @returns {Said} Empty if there is none.
 */
export function saidOf(
  { ranges = [], quantiles = [], linear = [], distribution = [] },
  domain,
  brief = false,
) {
  const quantile = quantiles[Math.floor(quantiles.length / 2)];
  if (quantile) {
    const half = quantile.p === 0.5;
    const part = half ? "Half" : `${Number((100 * quantile.p).toPrecision(6))}%`;
    const name = half ? "median" : `${part} quantile`;
    const [at, bounds] = quantileTexts(quantile);
    return { said: `${brief ? name : `${part} of the reports are`} ${at}`, bounds };
  }
  const [entry] = ranges.length ? ranges : distribution;
  if (entry) {
    const decimals = decimalsFor([entry]);
    const [share, low, high] = [within(entry), entry.low, entry.high].map((one) =>
      percentText(one, decimals),
    );
    const name = "name" in entry ? entry.name : labelText(entry.value, domain);
    return { said: `${name} has ${share}`, bounds: `${low} to ${high}` };
  }
  const [mean] = linear;
  if (!mean) return NOTHING;
  const [middle, low, high] = [mean.mean, mean.low, mean.high].map((one) => meanText(one, mean));
  return { said: `${mean.name} is ${middle}`, bounds: `${low} to ${high}` };
}
