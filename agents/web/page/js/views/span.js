// How far lines over time reach back, offered as times.

import { choose, chosen } from "../choices.js";
import { element, make } from "../dom.js";
import { durationText } from "../format.js";
import { PERIODS } from "../periods.js";

const NEWEST = 24; // Windows.
const ALL = "all";

/** @param {Collection} collection */
const chosenSpan = ({ window }) =>
  offered(window.hop_ms).find(([name]) => name === chosen("last"))?.[0] ?? "";

/** @param {number} hop_ms */
const offered = (hop_ms) => [
  ["", durationText(NEWEST * hop_ms)],
  ...Object.entries(PERIODS).flatMap(([name, [length]]) =>
    length > hop_ms && length !== NEWEST * hop_ms ? [[name, durationText(length)]] : [],
  ),
  [ALL, "all"],
];

/**
 * What asks for the series of final windows, and for that of open ones, which may still change and
 * have other bounds.
 *
 * @param {Collection} collection
 * @param {WindowState[]} windows The newest, oldest first.
 * @returns {{open: boolean, options: Options}[]}
 */
export function spansOf(collection, windows) {
  const wanted = chosenSpan(collection);
  const newest = windows[windows.length - 1];
  const last = windows.slice(-NEWEST);
  const back = wanted in PERIODS ? PERIODS[wanted][0] : 0;
  const from = back ? Date.parse(newest.window.end) - back : -Infinity;
  return [false, true].flatMap((open) => {
    const all = windows.filter(
      ({ final, window }) => final !== open && Date.parse(window.start) >= from,
    );
    const some = last.filter(({ final }) => final !== open);
    const shown = wanted ? all : some;
    if (shown.length === 0) return [];
    /** @type {Options} */
    const options = open
      ? { start: shown[0].window.start }
      : { end: shown[shown.length - 1].window.end };
    if (!wanted) options.last = shown.length;
    else if (back && !open) options.start = new Date(from).toISOString();
    return [{ open, options }];
  });
}

/** @param {() => void} changed */
export function startSpans(changed) {
  element("spans").addEventListener("click", ({ target }) => {
    const { last } = /** @type {HTMLElement} */ (target).dataset;
    if (last === undefined) return;
    choose({ last });
    changed();
  });
}

/** @param {Collection} collection */
export function drawSpans(collection) {
  const wanted = chosenSpan(collection);
  const buttons = offered(collection.window.hop_ms).map(([name, text]) =>
    make("button", { type: "button", "data-last": name, "aria-pressed": name === wanted }, text),
  );
  const host = element("spans");
  const before = [...host.children].map(({ outerHTML }) => outerHTML).join("");
  if (before !== buttons.map(({ outerHTML }) => outerHTML).join(""))
    host.replaceChildren(...buttons);
}
