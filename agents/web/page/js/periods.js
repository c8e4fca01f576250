// Spans of several windows: the newest hour, day, week or month, or what is dragged on the strip, and
// the spans that they are compared with. The address holds their names, or START/END.

import { ask, collectionPath } from "./api.js";
import { DAY_MS, HOUR_MS } from "./format.js";

/** @type {Record<string, [number, string]>} */
export const PERIODS = {
  hour: [HOUR_MS, "the last hour"],
  day: [DAY_MS, "the last 24 hours"],
  week: [7 * DAY_MS, "the last 7 days"],
  month: [30 * DAY_MS, "the last 30 days"],
};
/** @type {Record<string, [number, string]>} */
const EARLIER = {
  yesterday: [DAY_MS, "the same a day before"],
  "week-before": [7 * DAY_MS, "the same a week before"],
};
const CUSTOM = "/"; // START/END.

/** @param {string} time */
const ms = (time) => Date.parse(time);

/** @param {Span} span */
const lengthOf = ({ start, end }) => ms(end) - ms(start);

/** @param {Span} span */
export const periodName = ({ start, end }) => `${start}${CUSTOM}${end}`;

/** @param {string} name */
export const isCustom = (name) => name.includes(CUSTOM);

/** @param {string} name */
export const isPeriod = (name) => Object.hasOwn(PERIODS, name) || isCustom(name);

/** @param {Collection} collection Returns options of a list. */
export const periodOptions = ({ window }) =>
  Object.entries(PERIODS)
    .filter(([, [length]]) => length > window.size_ms)
    .map(([name, [, text]]) => [name, text]);

/** @param {Span} span Returns options of a list. */
export const earlierOptions = (span) =>
  Object.entries(EARLIER)
    .filter(([, [length]]) => length >= lengthOf(span))
    .map(([name, [, text]]) => [name, text]);

/** @param {string} name @returns {Span | null} */
function custom(name) {
  const [start, end] = name.split(CUSTOM);
  return end && ms(start) < ms(end) ? { start, end } : null;
}

/**
 * The span of a period, made of whole windows, oldest and newest of those that are kept; as if it
 * were a window.
 *
 * @param {string} collection
 * @param {string} name
 * @param {WindowState[]} windows The newest, oldest first.
 * @returns {Promise<WindowState | undefined>}
 */
export async function periodOf(collection, name, windows) {
  const newest = windows.findLast((one) => one.final);
  const own = custom(name);
  if (own) return joined(own, windows);
  if (!newest || !Object.hasOwn(PERIODS, name)) return undefined;
  const from = new Date(ms(newest.window.end) - PERIODS[name][0]).toISOString();
  /** @type {{windows: WindowState[]}} */
  const { windows: first } = await ask(
    `${collectionPath(collection)}/windows?limit=1&from=${encodeURIComponent(from)}`,
  );
  const { start } = (first[0] ?? newest).window;
  return joined({ start, end: newest.window.end }, windows);
}

/** @param {Span} span @param {WindowState[]} windows @returns {WindowState} */
function joined(span, windows) {
  const parts = windows.filter(({ window }) => isWithin(window, span));
  const newest = windows.findLast((one) => one.final);
  return {
    window: span,
    n: parts.reduce((sum, one) => sum + one.n, 0),
    late: parts.reduce((sum, one) => sum + one.late, 0),
    final: newest !== undefined && ms(span.end) <= ms(newest.window.end),
    published: false,
    period: true,
  };
}

/** @param {Span} part @param {Span | undefined} whole */
export const isWithin = (part, whole) =>
  whole !== undefined && ms(part.start) >= ms(whole.start) && ms(part.end) <= ms(whole.end);

/**
 * The span that a span is compared with, by its name; undefined if it names a window.
 *
 * @param {string} name
 * @param {WindowState} shown
 * @param {WindowState[]} windows
 * @returns {WindowState | undefined}
 */
export function earlierOf(name, { window, period }, windows) {
  const own = custom(name);
  if (own) return joined(own, windows);
  const named = Object.hasOwn(EARLIER, name) ? EARLIER[name][0] : 0;
  const back = named || (period && name === "before" ? lengthOf(window) : 0);
  if (!back) return undefined;
  const [start, end] = [window.start, window.end].map((time) => shifted(time, -back));
  return joined({ start, end }, windows);
}

/**
 * A span as long as this one, after or before it.
 *
 * @param {Span} span
 * @param {1 | -1} way
 */
export function nextTo(span, way) {
  const [start, end] = [span.start, span.end].map((time) => shifted(time, way * lengthOf(span)));
  return { start, end };
}

/** @param {string} time @param {number} by Milliseconds. */
const shifted = (time, by) => new Date(ms(time) + by).toISOString().replace(".000Z", "Z");
