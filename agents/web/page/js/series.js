// Answers of series as lines: ranges, quantiles, means and values over time.

import { moveWithin } from "./api.js";
import { axisTitle, numberOf } from "./axis.js";
import { labelText, nameText } from "./format.js";

/** @param {number} p */
export const quantileTitle = (p) => `Quantile ${p}`;

/** @type {Record<string, string>} Whom estimates are about. */
export const WHOM = {
  respondents: "respondents",
  population: "population",
  active: "active devices",
};
const QUANTILES = [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95];
const MOST_VALUES_OF_QUANTILES = 4096;
export const MOST_LINES = 4;
export const MOST_VALUES_LISTED = 200;

/**
 * The quantiles that all views ask for, as options: one family, so that each has the same bounds
 * wherever it is shown.
 *
 * @param {Collection} collection
 */
export function quantileOptions({ domain, quantiles, values }) {
  if (!domain.ordered || domain.shape.length > 1) return {};
  const few = values <= MOST_VALUES_OF_QUANTILES ? QUANTILES : [];
  return { quantile: quantiles.length ? quantiles : few };
}

/** @param {SeriesAnswer} of @returns {Spot[]} Oldest first. */
export const spotsOf = (of) =>
  of.points.start.map((start, at) => ({
    window: { start, end: of.points.end[at] },
    n: of.points.n[at],
    late: of.points.late[at],
    final: of.points.final[at],
    withheld: of.points.withheld[at],
    of,
  }));

/** @param {Series["kind"]} kind @param {Label} name @param {Domain} domain */
export function seriesTitle(kind, name, domain) {
  if (kind === "quantile") return quantileTitle(Number(name));
  return kind === "linear" ? `Mean ${nameText(`${name}`)}` : labelText(name, domain);
}

/**
 * The lines of answers to the same query, one after the other.
 *
 * @param {SeriesAnswer[]} answers
 * @param {Domain} domain
 * @returns {Series[]}
 */
export function seriesOf(answers, domain) {
  const spots = answers.map(spotsOf);
  return (answers[0]?.lines ?? []).map(({ kind, name }, line) => ({
    kind,
    title: seriesTitle(kind, name, domain),
    share: kind === "range" || kind === "value",
    unit:
      kind === "quantile"
        ? axisTitle(domain, 0)
        : kind === "linear"
          ? `mean ${name}`
          : `share of ${WHOM[answers[0].estimand]}`,
    points: answers.flatMap(({ lines }, place) =>
      spots[place].map((spot, at) => {
        const { estimate, low, high } = lines[line];
        return pointOf(spot, [estimate[at], low[at], high[at]], kind, domain);
      }),
    ),
  }));
}

/**
 * @param {Spot} spot
 * @param {[Label, Label, Label]} labels
 * @param {Series["kind"]} kind
 * @param {Domain} domain
 * @returns {Point}
 */
function pointOf(spot, labels, kind, domain) {
  const [share, low, high] = labels;
  if (kind !== "quantile") {
    const own = /** @type {Record<"share" | "low" | "high", number | null>} */ ({
      share,
      low,
      high,
    });
    moveWithin(own);
    return { spot, middle: own.share, low: own.low, high: own.high, labels: [], texts: [] };
  }
  return {
    spot,
    middle: numberOf(share, "middle"),
    low: numberOf(low, "low"),
    high: numberOf(high, "high"),
    labels: share === null ? [] : labels,
    texts: share === null ? [] : labels.map((one) => labelText(one, domain)),
  };
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
