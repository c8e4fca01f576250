// The newest windows as bars: their reports, which one is shown, and which may still change.
// For screen readers, the list of windows says the same, and its buttons reach every window.

import { annotationsIn, listAnnotations } from "./annotations.js";
import { element, make, say } from "./dom.js";
import { clockText, countText, zonedSpanText } from "./format.js";
import { isWithin } from "./periods.js";

/** @typedef {import("./types.js").Shown} Shown */
/** @typedef {import("./types.js").WindowState} WindowState */

const MOST = 48;
const TITLES = { open: "open", final: "final", withheld: "too few to be shown by themselves" };

/**
 * Draw the bars, changing them in place. An older window is shown in the middle.
 *
 * @param {Shown} shown
 */
export function drawStrip({ collection, windows, window, compared }) {
  const newest = windows.findLastIndex((one) => isWithin(one.window, window.window));
  const from = Math.max(0, Math.min(windows.length - MOST, newest - MOST / 2));
  const some = windows.slice(from, from + MOST);
  const most = Math.max(1, ...some.map(({ n }) => n));
  const strip = element("strip");
  some.forEach((one, place) => {
    const bar = strip.children[place] ?? strip.appendChild(make("span", {}));
    const state = !one.final ? "open" : one.n < collection.minimum ? "withheld" : "final";
    const chosen = isWithin(one.window, window.window)
      ? " shown"
      : isWithin(one.window, compared?.window)
        ? " compared"
        : "";
    const noted = annotationsIn(collection, one.window).map(({ text }) => text);
    const said = `${countText(one.n)} reports, ${TITLES[state]}`;
    Object.assign(bar, {
      className: `${state}${chosen}${noted.length ? " noted" : ""}`,
      title: [`${zonedSpanText(one.window)}: ${said}`, ...noted].join("; "),
    });
    const { dataset, style } = /** @type {HTMLElement} */ (bar);
    dataset.to = one.window.start;
    dataset.end = one.window.end;
    style.setProperty("--height", `${(100 * one.n) / most}%`);
  });
  while (strip.children.length > some.length) strip.lastElementChild?.remove();
  const [{ window: oldest }, { window: latest }] = [some[0], some[some.length - 1]];
  listAnnotations(annotationsIn(collection, { start: oldest.start, end: latest.end }));
  const [first, last] = [oldest.start, latest.start];
  say(element("strip-first"), clockText(first));
  say(element("strip-most"), `bars: reports of a window, at most ${countText(most)}`);
  say(element("strip-last"), some.length > 1 ? clockText(last) : "");
  element("strip-part").hidden = false;
}
