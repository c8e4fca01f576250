// What has changed between two spans, as the worker judges it, and the leading value.

import { askKept, queryPath } from "../api.js";
import { labelOf, numberOf } from "../axis.js";
import { chosen } from "../choices.js";
import { figure, make } from "../dom.js";
import {
  areaText,
  countText,
  decimalsFor,
  labelText,
  nameText,
  percentText,
  pointsText,
  tickText,
} from "../format.js";
import { quantileOptions, quantileTitle } from "../series.js";

const MOST_NAMED = 3;
const MOST_VALUES = 1000; // With more, those that differ most are listed.
const MOST_QUERIES = 100; // That a worker takes.
const PARTS = 8; // Of each side of a map without blocks.

/**
 * Ask how the population has changed: bounds are of the differences, all of one answer at once.
 *
 * @param {Collection} collection
 * @param {Span} span
 * @param {Span} before
 * @param {string} method
 * @returns {Promise<ChangeAnswer>}
 */
export async function askChange(collection, span, before, method) {
  const { domain, values, ranges } = collection;
  const many = domain.ordered ? "0" : "20"; // Single places of a map have the most noise.
  const parts = partsOf(domain).map(({ text }) => text);
  const asked = parts.length ? [...ranges, ...parts].slice(0, MOST_QUERIES) : [];
  /** @type {Options} */
  const options = {
    ...{ start: span.start, end: span.end, before_start: before.start, before_end: before.end },
    top: values <= MOST_VALUES && !parts.length ? "all" : many,
    method,
    ...quantileOptions(collection),
    range: asked,
    blocks: domain.blocks ? true : undefined,
    devices: chosen("devices") || undefined,
  };
  const answer = await askKept(queryPath(collection.name, "change", options));
  if (answer) return answer;
  const side = { n: 0, final: true, withheld: true };
  const [then, now] = [before, span].map((window) => ({ ...side, window }));
  const reason = "a part of the span to compare with has expired";
  return { before: then, after: now, withheld: true, reason };
}

/**
 * A map without blocks in parts of equal size: a change of single places is hardly ever told.
 *
 * @param {Domain} domain
 * @returns {{text: string, box: number[][]}[]} As ranges, and by places; empty for other domains.
 */
export function partsOf(domain) {
  if (!domain.ordered || domain.shape.length !== 2 || domain.blocks) return [];
  const sides = domain.shape.map((size, axis) => {
    const count = Math.min(PARTS, size);
    return Array.from({ length: count }, (_, at) => {
      const ends = [Math.round((at * size) / count), Math.round(((at + 1) * size) / count) - 1];
      const [first, last] = ends.map((place) => labelOf(domain, axis, place));
      return { text: `${numberOf(first, "low")}..${numberOf(last, "high")}`, ends };
    });
  });
  return sides[0].flatMap((down) =>
    sides[1].map((across) => ({
      text: `${down.text},${across.text}`,
      box: [down.ends, across.ends],
    })),
  );
}

const POINTS = " points";

/**
 * All that an answer judges, by the titles of series: ranges, blocks, quantiles, means and values.
 *
 * @param {ChangeAnswer} answer
 * @param {Pick<Collection, "domain" | "block_names">} collection
 * @returns {Told[]} Without what is undefined.
 */
export function changesIn(
  { values = [], blocks = [], ranges = [], quantiles = [], linear = [] },
  { domain, block_names },
) {
  const size = stepOf(domain);
  const unit = domain.unit ? ` ${domain.unit}` : "";
  const parts = new Set(partsOf(domain).map(({ text }) => text));
  /** @param {string} name */
  const rangeName = (name) => (parts.has(name) ? areaText({ name, box: [] }) : nameText(name));
  const all = [
    ...ranges.map((one) => ({
      ...one,
      key: one.name,
      name: rangeName(one.name),
      unit: POINTS,
    })),
    ...blocks.map((one) => ({
      ...one,
      key: one.block,
      name: nameText(block_names?.[one.block] ?? one.name ?? `Block ${one.block}`),
      unit: POINTS,
    })),
    ...quantiles.map(({ p, before, after, steps, low, high, told }) => {
      const [change, from, to] = [steps, low, high].map((one) =>
        one === null ? null : one * size,
      );
      const ends = { before, after, low: from, high: to };
      return { key: "", name: quantileTitle(p), change, ...ends, told, unit };
    }),
    ...linear.map((one) => ({ ...one, key: "", name: `Mean ${nameText(one.name)}`, unit: "" })),
    ...values.map((one) => ({
      ...one,
      key: "",
      name: labelText(one.value, domain),
      unit: POINTS,
    })),
  ];
  return all.flatMap(({ key, name, before, after, change: value, low, high, told, unit }) => {
    if (value === null || low === null || high === null) return [];
    const decimals = decimalsFor([{ low, high }]);
    const isShare = unit === POINTS;
    /** @param {number} one */
    const textOf = (one) => (isShare ? pointsText(one, decimals) : tickText(one, "", 3, true));
    const [was, now] = [before, after].map((one) => {
      if (typeof one !== "number") return labelText(one, domain);
      return isShare ? percentText(Math.min(1, Math.max(0, one)), decimals) : tickText(one, "", 4);
    });
    return [{ key, name, change: { value, low, high, told }, textOf, unit, was, now }];
  });
}

/** @param {Domain} domain Returns how far a value is from the next. */
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

/** @param {ChangeAnswer | null} answer @param {Told[]} told What is judged in it. */
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
  const bounds = `${percent(first.low).replace(/[\s\u061c\u200e]*[%٪][\u061c\u200e]*/, "")} to ${percent(first.high)}`;
  const said = `${percent(first.share)} (${bounds}).`;
  if (others.some(({ high }) => high === null || high >= least)) {
    if (domain.ordered) return "No value is told from all others.";
    return `No clear leader: ${labelText(first.value, domain)} has ${said}`;
  }
  const verb = distribution.length < values ? "has the largest estimate," : "leads with";
  return `${labelText(first.value, domain)} ${verb} ${said}`;
}
