// Which window or period is shown: the newest final window, the one that is still open, or that in
// the URL.

import { ask, collectionPath } from "./api.js";
import { choose, chosen } from "./choices.js";
import { element, offer, say, select } from "./dom.js";
import { spanText, titleOf } from "./format.js";
import {
  earlierOf,
  earlierOptions,
  isCustom,
  isPeriod,
  nextTo,
  periodName,
  periodOf,
  periodOptions,
} from "./periods.js";
import { COMPARE, onKeys } from "./shell/keys.js";

const LIVE = "live";
const BEFORE = "before";
const NEWEST_WINDOWS = 200;
const AROUND = 24; // Windows before and after an older one.

let expired = ""; // A span in the URL of which a part is not kept.

/** Call where the worker does not keep what is shown: of other windows the next list says so. */
export const noteExpired = () => (expired = isCustom(chosen("window")) ? chosen("window") : "");

/** @param {WindowState} one */
const keyOf = ({ window }) => window.start;

/**
 * Return the newest windows, and those around older ones that the URL asks for; all if none of these
 * is final, because the oldest open window says how long a collection waits.
 *
 * @param {string} name
 * @returns {Promise<WindowState[]>}
 */
export async function windowsOf(name) {
  const path = `${collectionPath(name)}/windows`;
  /** @type {{windows: WindowState[]}} */
  const { windows } = await ask(`${path}?last=${NEWEST_WINDOWS}`);
  if (windows.length < NEWEST_WINDOWS) return windows;
  if (!windows.some(({ final }) => final)) return (await ask(`${path}?all=true`)).windows;
  const known = new Map(windows.map((one) => [keyOf(one), one]));
  for (const start of new Set([chosen("window"), chosen("compare")])) {
    const at = windows.findIndex((one) => keyOf(one) === start);
    if (at >= AROUND || Number.isNaN(Date.parse(start))) continue;
    const time = encodeURIComponent(start);
    /** @type {{windows: WindowState[]}[]} */
    const sides = await Promise.all([
      ask(`${path}?last=${AROUND}&to=${time}`),
      ask(`${path}?limit=${AROUND}&from=${time}`),
    ]);
    for (const one of sides.flatMap((side) => side.windows)) known.set(keyOf(one), one);
  }
  return [...known.values()].sort((a, b) => Date.parse(keyOf(a)) - Date.parse(keyOf(b)));
}

/**
 * What the address names that is not there, and what is shown in its place; empty if all is there.
 *
 * @param {Collection} collection
 */
function insteadOf(collection) {
  const named = chosen("collection") || collection.name;
  if (named !== collection.name) {
    return `There is no collection ${named}: showing ${titleOf(collection)}.`;
  }
  const { attribute } = collection;
  const wanted = chosen("attribute") || attribute;
  if (wanted === attribute) return "";
  return `There is no attribute ${wanted}: showing ${attribute ?? titleOf(collection)}.`;
}

/**
 * Offer the windows and periods, and return the one to show: an open one only if it is asked for, or
 * if none is final yet.
 *
 * @param {Collection} collection
 * @param {WindowState[]} windows Oldest first.
 * @returns {Promise<WindowState | undefined>}
 */
export async function pickWindow(collection, windows) {
  const newest = windows.at(-1);
  const wanted = chosen("window");
  const final = windows.findLast((one) => one.final) ?? newest;
  const kept = isPeriod(wanted) && wanted !== expired;
  const period = kept ? await periodOf(collection.name, wanted, windows) : undefined;
  const asked = wanted === LIVE ? newest : windows.find((one) => keyOf(one) === wanted);
  const shown = period ?? asked ?? final;
  const options = [...windows]
    .reverse()
    .map((one) => [keyOf(one), `${spanText(one.window)}${one.final ? "" : " · open"}`]);
  const periods = periodOptions(collection);
  if (period && !periods.some(([name]) => name === wanted)) {
    periods.unshift([wanted, spanText(period.window)]);
  }
  options.unshift(["", "newest final"], [LIVE, "live, still open"], ...periods);
  offer(select("window"), options, wanted);
  const gone = wanted && !period && !asked;
  say(
    element("instead"),
    insteadOf(collection) ||
      (gone ? `The window of ${wanted} is not kept: showing the newest final one.` : ""),
  );
  offerCompared(windows, shown);
  const [older, newer] = shown ? besides(windows, shown) : ["", ""];
  for (const [id, to] of [
    ["older", older],
    ["newer", newer],
  ]) {
    const button = /** @type {HTMLButtonElement} */ (element(id));
    button.disabled = !to;
    button.dataset.to = to;
  }
  return shown;
}

/**
 * The windows before and after the one that is shown, or periods as long as it.
 *
 * @param {WindowState[]} windows
 * @param {WindowState} shown
 */
function besides(windows, shown) {
  const at = windows.indexOf(shown);
  if (!shown.period) {
    return [at - 1, at + 1].map((place) => (windows[place] ? keyOf(windows[place]) : ""));
  }
  const ends = [windows[0], windows[windows.length - 1]].map(keyOf).map(Date.parse);
  const [before, after] = [nextTo(shown.window, -1), nextTo(shown.window, 1)];
  return [
    Date.parse(before.end) > ends[0] ? periodName(before) : "",
    Date.parse(after.start) <= ends[1] ? periodName(after) : "",
  ];
}

/** @param {WindowState[]} windows @param {WindowState | undefined} shown */
function offerCompared(windows, shown) {
  const wanted = chosen("compare");
  const options = windows
    .filter((one) => one.final && one !== shown)
    .reverse()
    .map((one) => [keyOf(one), spanText(one.window)]);
  if (shown) options.unshift(...earlierOptions(shown.window));
  if (shown && beforeOf(windows, shown)) {
    options.unshift([BEFORE, `the ${shown.period ? "period" : "window"} before`]);
  }
  if (shown && isPeriod(wanted)) {
    options.unshift([wanted, spanText(earlierOf(wanted, shown, windows)?.window ?? shown.window)]);
  }
  offer(select("compare"), [["", "nothing"], ...options], wanted);
}

/**
 * The newest final window that ends before another span begins.
 *
 * @param {WindowState[]} windows Oldest first.
 * @param {WindowState} shown
 */
const beforeOf = (windows, { window }) =>
  windows.findLast((one) => one.final && Date.parse(one.window.end) <= Date.parse(window.start));

/**
 * The window or the period to compare with, if any.
 *
 * @param {WindowState[]} windows Oldest first.
 * @param {WindowState} shown
 * @returns {WindowState | undefined}
 */
export function comparedWindow(windows, shown) {
  const wanted = chosen("compare");
  if (!wanted) return undefined;
  const earlier = earlierOf(wanted, shown, windows);
  if (earlier || wanted === BEFORE) return earlier ?? beforeOf(windows, shown);
  return windows.find((one) => keyOf(one) === wanted && one !== shown);
}

/** Dragging over bars of the strip shows the span from the first to the last of them. */
function startDragging(/** @type {(span: string) => void} */ dragged) {
  const strip = element("strip");
  /** @param {Event} event @returns {HTMLElement | null} */
  const barOf = ({ target }) => /** @type {Element} */ (target).closest("#strip span");
  /** @type {HTMLElement | null} */
  let first = null;
  strip.addEventListener("pointerdown", (event) => (first = barOf(event)));
  strip.addEventListener("pointerover", (event) => {
    const last = event.buttons ? barOf(event) : null;
    if (!first || !last) return;
    const bars = [...strip.children];
    const [from, to] = [first, last].map((one) => bars.indexOf(one)).sort((a, b) => a - b);
    bars.forEach((bar, at) => bar.classList.toggle("dragged", from <= at && at <= to));
  });
  addEventListener("pointerup", (event) => {
    const some = /** @type {HTMLElement[]} */ ([...strip.querySelectorAll(".dragged")]);
    for (const bar of some) bar.classList.remove("dragged");
    if (first && some.length > 1 && strip.contains(/** @type {Node} */ (event.target))) {
      const [start, end] = [some[0].dataset.start, some[some.length - 1].dataset.end];
      dragged(periodName({ start: `${start}`, end: `${end}` }));
    }
    first = null;
  });
}

/** @param {() => void} changed */
export function startWindows(changed) {
  /** @param {string | undefined} to */
  const show = (to) => {
    if (!to) return;
    choose({ window: to });
    changed();
  };
  for (const id of ["older", "newer", "strip"]) {
    element(id).addEventListener("click", ({ target }) =>
      show(/** @type {HTMLElement} */ (target).dataset.to),
    );
  }
  startDragging(show);
  onKeys(document, COMPARE, () => {
    const list = select("compare");
    const before = [...list.options].some(({ value }) => value === BEFORE);
    if (list.disabled || !list.checkVisibility()) return;
    if (!list.value && !before) {
      list.focus();
      return;
    }
    choose({ compare: list.value ? "" : BEFORE });
    changed();
  });
}
