// The headline number of a collection, its course, and what has changed.

import { named } from "../attributes.js";
import {
  decimalsFor,
  labelText,
  meanText,
  nameText,
  partText,
  percentText,
  quantileTexts,
} from "../format.js";
import { seriesOf, seriesTitle, WHOM } from "../series.js";
import { changesIn } from "./changes.js";
import { standingText } from "./merged.js";

const NOTHING = { said: "", bounds: "" };
const KINDS = ["quantile", "range", "value", "linear"];

/**
 * The headline number: the median, a range, the leading label or a mean; of a grid, its areas.
 *
 * @param {Collection} collection
 * @param {SeriesAnswer} answer
 * @returns {First}
 */
export function firstOf(collection, answer) {
  const { attribute, points, lines, change, standing } = answer;
  const about = collection.attributes?.find(({ name }) => name === attribute);
  const { domain } = named(about ?? collection);
  // The largest cell or bin of an ordered domain is the one with the most noise.
  const told = lines.filter(({ kind }) => !(domain.ordered && kind === "value"));
  const line =
    told.find(({ kind, name }) => kind === "quantile" && name === 0.5) ??
    KINDS.flatMap((kind) => told.find((one) => one.kind === kind) ?? [])[0];
  const changes = change && !change.withheld ? changesIn(change, { ...collection, domain }) : [];
  /** @type {First} */
  const first = { newest: NOTHING, points: [], own: null, changes };
  const last = points.final.lastIndexOf(true);
  if (last < 0 || points.withheld[last]) return first;
  if (!line) {
    const said = standing ? standingText(standing.count, standing.largest) : "";
    return { ...first, newest: { said, bounds: "" } };
  }
  const { kind, name } = line;
  const series = seriesOf([answer], domain)[lines.indexOf(line)];
  first.points = series.points.filter(({ spot }) => spot.final);
  const { middle: share, low, high, labels } = series.points[last];
  const [at, from, to] = labels;
  const entry = /** @type {any} */ ({ share, low, high, name, value: name });
  const own = {
    quantile: { quantiles: [{ p: name, value: at, low: from, high: to }] },
    range: { ranges: [entry] },
    value: { distribution: [entry] },
    linear: { linear: [{ ...entry, mean: share }] },
  }[kind];
  first.newest = saidOf(/** @type {any} */ (own), domain, true);
  const title = seriesTitle(kind, name, domain);
  first.own = changes.find((one) => one.name === title) ?? null;
  return first;
}

/**
 * The headline number and its bounds: a quantile, a range, the largest share or a mean.
 *
 * @param {Pick<Estimate, "ranges" | "quantiles" | "linear" | "distribution" | "estimand">} estimate
 * @param {Domain} domain
 * @param {boolean} [brief] A name instead of a sentence.
 * @returns {Said} Empty if there is none.
 */
export function saidOf(
  { ranges = [], quantiles = [], linear = [], distribution = [], estimand = "respondents" },
  domain,
  brief = false,
) {
  const quantile = quantiles.find(({ p }) => p === 0.5) ?? quantiles[0];
  if (quantile) {
    const half = quantile.p === 0.5;
    const part = half ? "Half" : partText(quantile.p, 6);
    const name = half ? "median" : `${part} quantile`;
    const [at, bounds] = quantileTexts(quantile, domain.unit);
    return { said: `${brief ? name : `${part} of the ${WHOM[estimand]} are`} ${at}`, bounds };
  }
  const [entry] = ranges.length ? ranges : distribution;
  if (entry) {
    const decimals = decimalsFor([entry]);
    const [share, low, high] = [entry.share, entry.low, entry.high].map((one) =>
      percentText(one, decimals),
    );
    const name = "name" in entry ? nameText(entry.name) : labelText(entry.value, domain);
    return { said: `${name} has ${share}`, bounds: `${low} to ${high}` };
  }
  const [mean] = linear;
  if (!mean) return NOTHING;
  const [middle, low, high] = [mean.mean, mean.low, mean.high].map((one) => meanText(one, mean));
  return { said: `${nameText(mean.name)} is ${middle}`, bounds: `${low} to ${high}` };
}
