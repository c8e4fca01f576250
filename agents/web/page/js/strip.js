// The newest windows as bars: their reports, which one is shown, and which may still change. Those of
// a long period are drawn in groups, twice as far as it reaches.
// For screen readers, the list of windows says the same, and its buttons reach every window.

import { ask, queryPath } from "./api.js";
import { element, make, say } from "./dom.js";
import { clockText, countText, zonedSpanText } from "./format.js";
import { isWithin, periodName } from "./periods.js";
import { spotsOf } from "./series.js";

const MOST = 48;
const TITLES = { open: "open", final: "final", withheld: "too few to be shown by themselves" };

/** @typedef {Pick<WindowState, "window" | "n" | "final"> & {middle?: Span}} Bar With a middle, of several windows. */

/**
 * The bars; an older window is in the middle of them.
 *
 * @param {Shown} shown
 * @returns {Promise<Bar[]>}
 */
async function barsOf({ collection, windows, window }) {
  const [start, end] = [window.window.start, window.window.end].map(Date.parse);
  const isLong = window.period && end - start > MOST * collection.window.hop_ms;
  const newest = windows.findLastIndex((one) => isWithin(one.window, window.window));
  if (!isLong && (newest >= 0 || !window.period)) {
    const from = Math.max(0, Math.min(windows.length - MOST, newest - MOST / 2));
    return windows.slice(from, from + MOST);
  }
  /** @param {number} time */
  const text = (time) => new Date(time).toISOString();
  const around = { start: text(2 * start - end), end: text(2 * end - start), top: 0 };
  /** @type {SeriesAnswer} */
  const answer = await ask(queryPath(collection.name, "series", around));
  return spotsOf(answer).map((spot) => {
    const middle = text((Date.parse(spot.window.start) + Date.parse(spot.window.end)) / 2);
    return { ...spot, middle: { start: middle, end: middle } };
  });
}

/**
 * Draw the bars, changing them in place.
 *
 * @param {Shown} shown
 * @param {() => boolean} current
 */
export async function drawStrip(shown, current) {
  const { collection, window, compared } = shown;
  const some = await barsOf(shown);
  if (!current() || some.length === 0) return;
  const most = Math.max(1, ...some.map(({ n }) => n));
  const strip = element("strip");
  some.forEach((one, place) => {
    const bar = strip.children[place] ?? strip.appendChild(make("span", {}));
    const state = !one.final ? "open" : one.n < collection.minimum ? "withheld" : "final";
    const part = one.middle ?? one.window;
    const chosen = isWithin(part, window.window)
      ? " shown"
      : isWithin(part, compared?.window)
        ? " compared"
        : "";
    const noted = annotationsIn(collection, one.window).map(({ text }) => text);
    const said = `${countText(one.n)} reports, ${TITLES[state]}`;
    Object.assign(bar, {
      className: `${state}${chosen}${noted.length ? " noted" : ""}`,
      title: [`${zonedSpanText(one.window)}: ${said}`, ...noted].join("; "),
    });
    const { dataset, style } = /** @type {HTMLElement} */ (bar);
    dataset.to = one.middle ? periodName(one.window) : one.window.start;
    dataset.start = one.window.start;
    dataset.end = one.window.end;
    style.setProperty("--height", `${(100 * one.n) / most}%`);
  });
  while (strip.children.length > some.length) strip.lastElementChild?.remove();
  const [{ window: oldest }, { window: latest }] = [some[0], some[some.length - 1]];
  listAnnotations(annotationsIn(collection, { start: oldest.start, end: latest.end }));
  const [first, last] = [oldest.start, latest.start];
  say(element("strip-first"), clockText(first));
  say(
    element("strip-most"),
    `bars: reports of ${some[0].middle ? "several windows" : "a window"}, at most ${countText(most)}`,
  );
  say(element("strip-last"), some.length > 1 ? clockText(last) : "");
  element("strip-part").hidden = false;
}

/** @typedef {{time: string, text: string}} Annotation */

/** @param {Collection} collection @param {Span} span @returns {Annotation[]} */
const annotationsIn = ({ annotations = [] }, { start, end }) =>
  annotations.filter(
    ({ time }) => Date.parse(start) <= Date.parse(time) && Date.parse(time) < Date.parse(end),
  );

/** @param {Annotation[]} annotations As a list, which also screen readers have. */
function listAnnotations(annotations) {
  const list = element("annotations");
  list.hidden = annotations.length === 0;
  const items = annotations.map(({ time, text }) =>
    make("li", {}, make("span", {}, `◆ ${clockText(time)}`), ` ${text}`),
  );
  list.replaceChildren(...items);
}
