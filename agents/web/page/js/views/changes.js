// Differences between two windows, and the leading value, as far as simultaneous bounds show them.

import { ask, estimatePath } from "../api.js";
import { figure, make } from "../dom.js";
import { countText, decimalsFor, labelText, percentText } from "../format.js";

/** @typedef {import("../types.js").Collection} Collection */
/** @typedef {import("../types.js").Estimate} Estimate */
/** @typedef {import("../types.js").ValueEntry} ValueEntry */
/** @typedef {import("../types.js").WindowState} WindowState */
/** @typedef {{value: number, low: number, high: number, was?: ValueEntry}} Change */
/** @typedef {Map<string, Change>} Changes By the text of a label. */

const MOST_NAMED = 3;

/** @param {Collection} collection @returns {string} The confidence with half of its error. */
export const halfError = ({ confidence }) => String(Number(((1 + confidence) / 2).toPrecision(12)));

/**
 * The differences of all shares. Each window gets half of the error, so that all bounds of both
 * windows hold at once, and so do those of the differences, even if devices repeat their randomness.
 *
 * @param {Collection} collection
 * @param {WindowState} window
 * @param {WindowState} before
 * @param {string} method
 * @returns {Promise<Changes | null>}
 */
export async function changesOf(collection, window, before, method) {
  const confidence = halfError(collection);
  const [now, then] = await Promise.all(
    [window, before].map(async (one) => {
      /** @type {Estimate} */
      const estimate = await ask(
        estimatePath(collection.name, one.window, [
          ["top", "all"],
          ["simultaneous", "true"],
          ["confidence", confidence],
          ["method", one.final ? collection.method : method],
        ]),
      );
      return estimate;
    }),
  );
  if (now.withheld || then.withheld) return null;
  const old = new Map(
    (then.distribution ?? []).map((one) => [labelText(one.value, collection.domain), one]),
  );
  /** @type {Changes} */
  const found = new Map();
  for (const entry of now.distribution ?? []) {
    const name = labelText(entry.value, collection.domain);
    const was = old.get(name);
    if (!was || entry.share === null || was.share === null) continue;
    if (entry.low === null || entry.high === null || was.low === null || was.high === null)
      continue;
    const value = entry.share - was.share;
    found.set(name, { value, low: entry.low - was.high, high: entry.high - was.low, was });
  }
  return found;
}

/** @param {Change} change */
export const isShown = ({ low, high }) => low > 0 || high < 0;

/**
 * @param {Change | undefined} change
 * @param {(difference: number) => string} textOf With its sign.
 * @param {string} [unit]
 */
export function changeCell(change, textOf, unit = "") {
  if (!change) return "";
  const { value, low, high } = change;
  const bounds = `${textOf(low)} to ${textOf(high)}${unit}`;
  const rose = low > 0;
  const said = isShown(change)
    ? make(
        "span",
        { className: rose ? "rose" : "fell" },
        `${rose ? "▲" : "▼"} changed by `,
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

/** @param {Changes | null} changes */
export function changedText(changes) {
  if (!changes) return "";
  const shown = [...changes].filter(([, change]) => isShown(change));
  if (shown.length === 0) return `No difference is shown for any of ${countText(changes.size)}.`;
  const rose = shown.filter(([, { low }]) => low > 0).map(([name]) => name);
  const fell = shown.filter(([, { high }]) => high < 0).map(([name]) => name);
  const said = [rose.length && `${listText(rose)} rose`, fell.length && `${listText(fell)} fell`];
  const rest = changes.size - shown.length;
  const others = rest ? `; no difference is shown for the other ${countText(rest)}` : "";
  return `${said.filter(Boolean).join(", ")}${others}.`;
}

/**
 * The estimate, moved into its bounds: it may be below 0 or, because of its own noise, above the
 * exactly known share of its block; bounds are neither.
 *
 * @param {import("../types.js").Entry} entry
 */
export const within = ({ share, low, high }) =>
  share === null || low === null || high === null ? share : Math.min(Math.max(share, low), high);

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
  const said = `${percent(within(first))} (${bounds}).`;
  if (others.some(({ high }) => high === null || high >= least)) {
    return `No clear leader: ${labelText(first.value, domain)} has ${said}`;
  }
  const verb = distribution.length < values ? "has the largest estimate," : "leads with";
  return `${labelText(first.value, domain)} ${verb} ${said}`;
}
