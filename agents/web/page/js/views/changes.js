// What has changed between two spans, as the worker judges it, and the leading value.

import { ask, estimatePath } from "../api.js";
import { labelOf, numberOf } from "../axis.js";
import { figure, make } from "../dom.js";
import {
  countText,
  decimalsFor,
  labelText,
  percentText,
  pointsText,
  spanTextUtc,
  tickText,
} from "../format.js";
import { quantileOptions, quantileTitle } from "../series.js";

/** @typedef {import("../types.js").Collection} Collection */
/** @typedef {import("../types.js").ChangeAnswer} ChangeAnswer */
/** @typedef {import("../types.js").Span} Span */
/** @typedef {import("../types.js").ValueEntry} ValueEntry */
/** @typedef {{value: number, low: number, high: number, told: "rose" | "fell" | null}} Change */
/** @typedef {{name: string, change: Change, textOf: (difference: number) => string, unit: string}} Told */

const MOST_NAMED = 3;
const MOST_VALUES = 1000; // With more, those that differ most are listed.

/**
 * Ask how the population has changed: bounds are of the differences, all of one answer at once.
 *
 * @param {Collection} collection
 * @param {Span} span
 * @param {Span} before
 * @param {string} method
 * @returns {Promise<ChangeAnswer>}
 */
export function askChange(collection, span, before, method) {
  /** @type {[string, string][]} */
  const options = [
    ["before_start", before.start],
    ["before_end", before.end],
    ["top", collection.values <= MOST_VALUES ? "all" : "20"],
    ["method", method.startsWith("profile") ? "padded" : method], // Profile bounds are single.
    ...quantileOptions(collection),
  ];
  return ask(estimatePath(collection.name, span, options, "change"));
}

/**
 * All that an answer judges, by the titles of series: values, ranges, quantiles and means.
 *
 * @param {ChangeAnswer} answer
 * @param {Collection} collection
 * @returns {Told[]} Without what is undefined.
 */
export function changesIn({ values = [], ranges = [], quantiles = [], linear = [] }, { domain }) {
  const size = stepOf(domain);
  const all = [
    ...ranges.map((one) => ({ ...one, name: one.name, unit: " points" })),
    ...quantiles.map(({ p, steps, low, high, told }) => {
      const [change, from, to] = [steps, low, high].map((one) =>
        one === null ? null : one * size,
      );
      return { name: quantileTitle(p), change, low: from, high: to, told, unit: "" };
    }),
    ...linear.map((one) => ({ ...one, name: `Mean ${one.name}`, unit: "" })),
    ...values.map((one) => ({ ...one, name: labelText(one.value, domain), unit: " points" })),
  ];
  return all.flatMap(({ name, change: value, low, high, told, unit }) => {
    if (value === null || low === null || high === null) return [];
    const decimals = decimalsFor([{ low, high }]);
    /** @param {number} one */
    const textOf = (one) =>
      unit ? pointsText(one, decimals) : `${one > 0 ? "+" : ""}${tickText(one, "", 3)}`;
    return [{ name, change: { value, low, high, told }, textOf, unit }];
  });
}

/** @param {import("../types.js").Domain} domain Returns how far a value is from the next. */
function stepOf(domain) {
  if (!domain.ordered || domain.shape[0] < 2) return 1;
  const [first, second] = [0, 1].map((place) => numberOf(labelOf(domain, 0, place), "high"));
  return Number(((second ?? 1) - (first ?? 0)).toPrecision(12));
}

/** @param {Change} change */
export const isShown = ({ told }) => told !== null;

/**
 * @param {Change | undefined} change
 * @param {(difference: number) => string} textOf With its sign.
 * @param {string} [unit]
 */
export function changeCell(change, textOf, unit = "") {
  if (!change) return "";
  const { value, low, high, told } = change;
  const bounds = `${textOf(low)} to ${textOf(high)}${unit}`;
  const said = told
    ? make(
        "span",
        { className: told },
        `${told === "rose" ? "▲" : "▼"} changed by `,
        figure(`${textOf(value)}${unit}`, value),
      )
    : make("span", {}, "no difference shown");
  return make("span", { className: "change" }, said, make("small", {}, bounds));
}

/** @param {string[]} names @param {number} [most] */
export const listText = (names, most = MOST_NAMED) =>
  names.length <= most
    ? names.join(names.length === 2 ? " and " : ", ")
    : `${names.slice(0, most).join(", ")} and ${countText(names.length - most)} more`;

/**
 * @param {ChangeAnswer | null} answer
 * @param {Told[]} told What is judged in it.
 */
export function changedText(answer, told) {
  if (!answer) return "";
  if (answer.withheld) return `Nothing is compared: ${answer.reason}.`;
  /** @param {string} how */
  const names = (how) => told.filter(({ change }) => change.told === how).map(({ name }) => name);
  const [rose, fell] = [names("rose"), names("fell")];
  const rest = told.length - rose.length - fell.length;
  const many = countText(rest);
  if (rest === told.length) return many === "0" ? "" : `No difference is shown for any of ${many}.`;
  const said = [rose.length && `${listText(rose)} rose`, fell.length && `${listText(fell)} fell`];
  const others = rest ? `; no difference is shown for the other ${many}` : "";
  return `${said.filter(Boolean).join(", ")}${others}.`;
}

/** @type {Record<string, string>} What is assumed of the devices of two spans. */
const DEVICES = {
  different: "no device reports in both",
  fresh: "a device may report in both, with other noise",
  held: "a device may send the same noise in both, so that distances add up",
};

/** @param {ChangeAnswer} answer What its bounds are. */
export const changeBoundsText = ({ before, estimand, devices }) =>
  `Changes since ${spanTextUtc(before.span ?? before.window)} are of the ${estimand}, with sampling ` +
  `error, and their bounds hold for all of them together (${DEVICES[devices ?? "fresh"]}). ` +
  "“No difference shown” is no proof that there is none.";

/**
 * Name the leading value, but only if its lower bound is above all others' upper bounds.
 *
 * @param {ValueEntry[]} distribution With simultaneous bounds.
 * @param {Collection} collection
 */
export function leaderText(distribution, { values, domain }) {
  const [first, ...others] = [...distribution].sort((a, b) => (b.share ?? 0) - (a.share ?? 0));
  if (!first || first.share === null || first.low === null) return "";
  const least = first.low;
  const decimals = decimalsFor([first]);
  /** @param {number | null} share */
  const percent = (share) => percentText(share, decimals);
  const bounds = `${percent(first.low).replace("%", "")} to ${percent(first.high)}`;
  const said = `${percent(first.share)} (${bounds}).`;
  if (others.some(({ high }) => high === null || high >= least)) {
    if (domain.ordered) return "No value is told from all others.";
    return `No clear leader: ${labelText(first.value, domain)} has ${said}`;
  }
  const verb = distribution.length < values ? "has the largest estimate," : "leads with";
  return `${labelText(first.value, domain)} ${verb} ${said}`;
}
