// The headline number of a collection, its course, and what has changed.

import { decimalsFor, labelText, meanText, percentText, quantileTexts } from "../format.js";
import { estimatesOf, spansOnce } from "../history.js";
import {
  leadersOf,
  MOST_VALUES_LISTED,
  quantileOptions,
  quantileTitle,
  seriesOf,
} from "../series.js";
import { askChange, changesIn } from "./changes.js";
import { standingText } from "./merged.js";

/** @typedef {import("../types.js").Collection} Collection */
/** @typedef {import("../types.js").Estimate} Estimate */
/** @typedef {import("../types.js").WindowState} WindowState */
/** @typedef {import("./changes.js").Told} Told */
/** @typedef {{said: string, bounds: string}} Said */
/**
 * @typedef {object} First
 * @property {Said} newest In the newest final window; empty if nothing is shown of it.
 * @property {import("../series.js").Point[]} points In all final windows, each span once.
 * @property {Told | null} own How the number has changed since the final window before.
 * @property {Told[]} changes All changes since then.
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
  const grid = domain.ordered && domain.shape.length > 1;
  /** @type {[string, string][]} */
  const asked = [
    ["top", listed ? "all" : domain.ordered ? "0" : "1"],
    ["simultaneous", "true"],
    ...quantileOptions(collection),
  ];
  if (grid && !ranges.length && values <= MOST_FOLLOWED) asked.push(["areas", "true"]);
  const all = await estimatesOf(collection, finals, asked, current);
  /** @type {First} */
  const first = { newest: NOTHING, points: [], own: null, changes: [] };
  if (!current() || all.length === 0) return first;
  const { windows: spans, estimates } = spansOnce(finals, all);
  const newest = estimates[estimates.length - 1];
  const [name] = listed ? leadersOf(estimates, domain) : [];
  const leader = newest.distribution?.filter(
    ({ value }) => !name || labelText(value, domain) === name,
  );
  if (newest.withheld) return first;
  first.newest = saidOf({ ...newest, distribution: leader }, domain, true);
  if (!followed) return first;
  const line = lineOf(collection, spans, estimates, name);
  first.points = line?.points ?? [];
  const before = spans.at(-2);
  if (!before) return first;
  const answer = await askChange(
    collection,
    spans[spans.length - 1].window,
    before.window,
    collection.method,
  );
  if (answer.withheld) return first;
  first.changes = changesIn(answer, collection);
  first.own = first.changes.find((one) => one.name === line?.title) ?? null;
  return first;
}

/**
 * The series of the number that `saidOf` chooses.
 *
 * @param {Collection} collection
 * @param {WindowState[]} windows
 * @param {Estimate[]} estimates
 * @param {string} name Of the leading label.
 */
function lineOf(collection, windows, estimates, name) {
  const all = seriesOf(collection, windows, estimates, name ? [name] : []);
  const half = all.find(({ title }) => title === quantileTitle(0.5));
  const kinds = ["quantile", "range", "value", "mean"];
  return half ?? kinds.flatMap((kind) => all.find((one) => one.kind === kind) ?? [])[0];
}

/**
 * The headline number and its bounds: a quantile, a range, the largest share or a mean.
 *
 * @param {Pick<Estimate, "ranges" | "quantiles" | "linear" | "distribution" | "areas">} estimate
 * @param {import("../types.js").Domain} domain
 * @param {boolean} [brief] A name instead of a sentence.
 * @returns {Said} Empty if there is none.
 */
export function saidOf(
  { ranges = [], quantiles = [], linear = [], distribution = [], areas },
  domain,
  brief = false,
) {
  const quantile = quantiles.find(({ p }) => p === 0.5) ?? quantiles[0];
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
    const [share, low, high] = [entry.share, entry.low, entry.high].map((one) =>
      percentText(one, decimals),
    );
    const name = "name" in entry ? entry.name : labelText(entry.value, domain);
    return { said: `${name} has ${share}`, bounds: `${low} to ${high}` };
  }
  const [mean] = linear;
  if (!mean) return areas ? { said: standingText(areas.entries), bounds: "" } : NOTHING;
  const [middle, low, high] = [mean.mean, mean.low, mean.high].map((one) => meanText(one, mean));
  return { said: `${mean.name} is ${middle}`, bounds: `${low} to ${high}` };
}
