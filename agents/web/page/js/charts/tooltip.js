// One tooltip for all charts. Pointing, focus and a tap show the same, next to a cursor that all
// panels of a view share; on a phone it is a sheet at the bottom.

import { element, make, say } from "../dom.js";
import { PLACES } from "../shell/keys.js";

const GAP = 12; // Pixels between the cursor and the tooltip.

/** @type {Map<HTMLElement, Pointed<any>>} */
const charts = new Map();
/** @type {{host: HTMLElement, place: any} | null} */
let now = null;
// A chart that is resized has its cursor elsewhere, and one of another view has none.
const watch = new ResizeObserver(refreshTip);

/**
 * Where a key leads in a row of places, or null.
 *
 * @template Place
 * @param {Place[]} places
 * @param {Place | null} from
 * @param {string} key Empty for the place to begin at, which is the first or, if `back`, the last.
 * @param {boolean} [back]
 */
export function along(places, from, key, back = false) {
  const move = PLACES.means[key];
  if ((key && !move) || places.length === 0) return null;
  const last = places.length - 1;
  const at = from === null ? -1 : places.indexOf(from);
  const [down, across] = at < 0 && Number.isFinite(move?.[1]) ? [0, 0] : (move ?? [0, 0]);
  return places[
    Math.min(last, Math.max(0, (at < 0 && back ? last : Math.max(0, at)) + down + across))
  ];
}

/**
 * Let a chart be pointed at, by its newest data.
 *
 * @template Place
 * @param {HTMLElement} host
 * @param {Pointed<Place>} pointed
 * @param {boolean} [focusable] Whether it is focused as a whole.
 */
export function pointAt(host, pointed, focusable = true) {
  const known = charts.has(host);
  charts.set(host, pointed);
  if (known) {
    // Charts compute their scales after this task.
    if (now?.host === host) queueMicrotask(refreshTip);
    return;
  }
  if (focusable) host.tabIndex = 0;
  watch.observe(host);
  /** @param {PointerEvent} event @param {boolean} [aloud] */
  const point = (event, aloud) => {
    const place = charts.get(host)?.at(event) ?? null;
    if (place !== null) show(host, place, aloud);
  };
  host.addEventListener("pointermove", (event) => {
    // A finger that has not tapped scrolls the page.
    if (event.pointerType !== "touch" || now?.host === host) point(event);
  });
  host.addEventListener("click", (event) => point(/** @type {PointerEvent} */ (event), true));
  host.addEventListener("pointerleave", ({ pointerType }) => {
    if (pointerType !== "touch" && now?.host === host && !isFocused(host)) end();
  });
  host.addEventListener("focus", () => {
    if (now?.host !== host && host.matches(":focus-visible")) step(host, "");
  });
  host.addEventListener("blur", () => {
    if (now?.host === host) end();
  });
  host.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== host) return;
    const place = now?.host === host ? now.place : null;
    if (charts.get(host)?.act?.(place, event.key) || step(host, event.key)) {
      event.preventDefault();
      event.stopPropagation();
    }
  });
}

/** @param {HTMLElement} host Whether it, or a part of it, is focused by the keyboard. */
const isFocused = (host) => host.querySelector(":focus-visible") || host.matches(":focus-visible");

/** @param {HTMLElement} host @param {string} key */
function step(host, key) {
  const place = charts.get(host)?.move(now?.host === host ? now.place : null, key) ?? null;
  if (place !== null) show(host, place, true);
  return place !== null;
}

/**
 * Move the cursor of a chart to a place.
 *
 * @param {HTMLElement} host
 * @param {unknown} place
 * @param {boolean} [aloud] Whether screen readers announce it.
 */
export function show(host, place, aloud = false) {
  if (now && now.host !== host) end();
  now = { host, place };
  refreshTip();
  if (aloud && now) say(element("tip-said"), spoken(element("tip")));
}

/** Show what the newest data say of the place, without announcing it again. */
export function refreshTip() {
  if (!now) return;
  const { host, place } = now;
  const pointed = charts.get(host);
  const tip = host.offsetParent ? pointed?.tip(place) : null;
  const box = tip ? pointed?.mark(place) : null;
  if (tip && box) showTip(tip, box);
  else end();
}

/** Take the tooltip and the cursor away. */
export function end() {
  if (now) charts.get(now.host)?.mark(null);
  now = null;
  hideTip();
}

/** @param {Tip} tip @param {Box} box */
function showTip({ title, more = "", rows, notes = [], keys = "" }, box) {
  const shown = element("tip");
  const made = make(
    "div",
    {},
    make("p", { className: "head" }, make("strong", {}, title), " ", make("span", {}, more)),
    ...rows.map(({ mark = null, name, value, bounds = [] }) =>
      make(
        "p",
        {},
        make("span", {}, mark, name),
        make("strong", {}, value),
        make("span", {}, ...bounds),
      ),
    ),
    ...notes.map((note) => make("p", { className: "more" }, make("span", {}, note))),
    keys && make("p", { className: "keys" }, keys),
  );
  if (!shown.firstElementChild?.isEqualNode(made)) shown.replaceChildren(made);
  shown.hidden = false;
  const { clientWidth, clientHeight } = document.documentElement;
  const { offsetWidth, offsetHeight } = shown;
  const right = box.right + GAP;
  const left = right + offsetWidth < clientWidth ? right : box.left - GAP - offsetWidth;
  const top = Math.max(4, Math.min(box.top, clientHeight - offsetHeight - 4));
  shown.style.setProperty("--left", `${Math.max(4, left) + scrollX}px`);
  shown.style.setProperty("--top", `${top + scrollY}px`);
}

function hideTip() {
  element("tip").hidden = true;
  say(element("tip-said"), "");
}

/** @param {HTMLElement} tip A line as a sentence. */
function spoken(tip) {
  const lines = [...tip.querySelectorAll("p")].map(({ children }) =>
    [...children].flatMap(({ textContent }) => textContent.trim() || []).join(", "),
  );
  return lines.filter(Boolean).join(". ");
}

/** Escape ends it, and so does a tap on the sheet. */
export function startTooltip() {
  document.addEventListener("keydown", ({ key }) => {
    if (key === "Escape") end();
  });
  element("tip").addEventListener("click", end);
}
