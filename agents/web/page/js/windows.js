// Which window is shown: the newest final one, the one that is still open, or the one in the URL.

import { ask, collectionPath } from "./api.js";
import { choose, chosen } from "./choices.js";
import { element, offer, say, select } from "./dom.js";
import { spanText } from "./format.js";
import { COMPARE, onKeys } from "./shell/keys.js";

/** @typedef {import("./types.js").WindowState} WindowState */

const LIVE = "live";
const BEFORE = "before";
const NEWEST_WINDOWS = 200;

/** @param {WindowState} one */
const keyOf = ({ window }) => window.start;

/**
 * Return the newest windows, as many as are asked for; all if none of these is final, because the
 * oldest open window says how long a collection waits.
 *
 * @param {string} name
 * @param {number} last
 * @returns {Promise<WindowState[]>}
 */
export async function newestWindows(name, last) {
  const path = `${collectionPath(name)}/windows`;
  /** @type {{windows: WindowState[]}} */
  const { windows } = await ask(`${path}?last=${last}`);
  if (windows.length < last || windows.some(({ final }) => final)) return windows;
  return (await ask(`${path}?all=true`)).windows;
}

/**
 * Return the newest windows, and before them older ones that the URL asks for.
 *
 * @param {string} name
 * @returns {Promise<WindowState[]>}
 */
export async function windowsOf(name) {
  const path = `${collectionPath(name)}/windows`;
  const windows = await newestWindows(name, NEWEST_WINDOWS);
  for (const start of new Set([chosen("window"), chosen("compare")])) {
    const known = windows.some((one) => keyOf(one) === start);
    if (known || Number.isNaN(Date.parse(start))) continue;
    /** @type {{windows: WindowState[]}} */
    const older = await ask(`${path}?limit=1&from=${encodeURIComponent(start)}`);
    windows.unshift(...older.windows.filter((one) => keyOf(one) === start));
  }
  return windows.sort((a, b) => Date.parse(keyOf(a)) - Date.parse(keyOf(b)));
}

/**
 * Offer the windows, and return the one to show: an open one only if it is asked for, or if none is
 * final yet.
 *
 * @param {WindowState[]} windows Oldest first.
 * @returns {WindowState | undefined}
 */
export function pickWindow(windows) {
  const newest = windows.at(-1);
  const wanted = chosen("window");
  const final = windows.findLast((one) => one.final) ?? newest;
  const asked = wanted === LIVE ? newest : windows.find((one) => keyOf(one) === wanted);
  const shown = asked ?? final;
  /** @type {[string, string][]} */
  const options = [...windows]
    .reverse()
    .map((one) => [keyOf(one), `${spanText(one.window)}${one.final ? "" : " · open"}`]);
  offer(select("window"), [["", "newest final"], [LIVE, "live, still open"], ...options], wanted);
  const at = shown ? windows.indexOf(shown) : 0;
  /** @type {HTMLButtonElement} */ (element("older")).disabled = at <= 0;
  /** @type {HTMLButtonElement} */ (element("newer")).disabled = at >= windows.length - 1;
  say(
    element("instead"),
    wanted && !asked ? `The window of ${wanted} is not kept: showing the newest final one.` : "",
  );
  offerCompared(windows, shown);
  element("older").dataset.to = at > 0 ? keyOf(windows[at - 1]) : "";
  element("newer").dataset.to = at < windows.length - 1 ? keyOf(windows[at + 1]) : "";
  return shown;
}

/**
 * @param {WindowState[]} windows
 * @param {WindowState | undefined} shown
 */
function offerCompared(windows, shown) {
  /** @type {[string, string][]} */
  const options = windows
    .filter((one) => one.final && one !== shown)
    .reverse()
    .map((one) => [keyOf(one), spanText(one.window)]);
  if (shown && beforeOf(windows, shown)) options.unshift([BEFORE, "the window before"]);
  offer(select("compare"), [["", "nothing"], ...options], chosen("compare"));
}

/**
 * @param {WindowState[]} windows Oldest first.
 * @param {WindowState} shown
 */
const beforeOf = (windows, shown) =>
  windows.findLast((one) => one.final && Date.parse(keyOf(one)) < Date.parse(keyOf(shown)));

/**
 * The window to compare with, if any.
 *
 * @param {WindowState[]} windows Oldest first.
 * @param {WindowState} shown
 */
export function comparedWindow(windows, shown) {
  const wanted = chosen("compare");
  if (!wanted) return undefined;
  if (wanted !== BEFORE) return windows.find((one) => keyOf(one) === wanted && one !== shown);
  return beforeOf(windows, shown);
}

/** @param {() => void} changed */
export function startWindows(changed) {
  for (const id of ["older", "newer", "strip"]) {
    element(id).addEventListener("click", ({ target }) => {
      const { to } = /** @type {HTMLElement} */ (target).dataset;
      if (!to) return;
      choose({ window: to });
      changed();
    });
  }
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
