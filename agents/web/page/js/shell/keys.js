// The page's keys: one declaration, from which they act and from which a dialog lists them.

import { element, make } from "../dom.js";

/**
 * @template Meaning
 * @typedef {object} Keys
 * @property {string[]} shown
 * @property {string} does
 * @property {Record<string, Meaning>} means Empty if the browser handles them.
 */

const LEAP = 10;
const PICKERS = ["add-line", "search", "top", "measure", "collection"]; // The first that is in sight.
const STORED = "ldpstream.keys";

/** @type {Keys<boolean>} */
export const COMPARE = {
  shown: ["C"],
  does: "compare with the window before, or stop; over time, with the one at the cursor",
  means: { c: true },
};
/** @type {Keys<boolean>} */
const PICK = { shown: ["/"], does: "search values, or pick a line", means: { "/": true } };
/** @type {Keys<boolean>} */
export const PAUSE = { shown: ["P"], does: "hold the page still, or go on", means: { p: true } };
/** @type {Keys<boolean>} */
const LIST = { shown: ["?"], does: "list the keys", means: { "?": true } };
/** @type {Keys<number>} */
export const TABS = {
  shown: ["←", "→", "Home", "End"],
  does: "on the tabs: another view",
  means: { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity },
};
/** @type {Keys<[number, number]>} Rows and columns. */
export const PLACES = {
  shown: ["←", "→", "↑", "↓", "Page Up", "Page Down", "Home", "End"],
  does: "on charts, tables and the map: another place",
  means: {
    ArrowUp: [-1, 0],
    ArrowDown: [1, 0],
    ArrowLeft: [0, -1],
    ArrowRight: [0, 1],
    PageUp: [-LEAP, 0],
    PageDown: [LEAP, 0],
    Home: [0, -Infinity],
    End: [0, Infinity],
  },
};
/** @type {Keys<number>} */
export const ZOOM = {
  shown: ["+", "−", "0"],
  does: "on the map: zoom in, out, to the whole",
  means: { "+": 2, "=": 2, "-": 0.5, 0: 0 },
};
/** @type {Keys<never>} */
const ENTER = {
  shown: ["Enter"],
  does: "open a link or a list, press a button; over time, open the window at the cursor",
  means: {},
};
/** @type {Keys<boolean>} */
export const CLOSE = {
  shown: ["Esc"],
  does: "close what is open, and go back to where you were",
  means: { Escape: true },
};
const ALL = [COMPARE, PICK, PAUSE, LIST, TABS, PLACES, ZOOM, ENTER, CLOSE];

const dialog = () => /** @type {HTMLDialogElement} */ (element("keys"));
const letters = () => /** @type {HTMLInputElement} */ (element("letters"));

/**
 * Let keys act where they are pressed. On the whole document they act once however long they are
 * held, but not while somebody types or a dialog is open, nor once they are turned off.
 *
 * @template Meaning
 * @param {HTMLElement | Document} where
 * @param {Keys<Meaning>} keys
 * @param {(meaning: Meaning) => void} act
 */
export function onKeys(where, { means }, act) {
  where.addEventListener("keydown", (pressed) => {
    const event = /** @type {KeyboardEvent} */ (pressed);
    const { key, target, ctrlKey, metaKey, altKey } = event;
    // Filling in a form by itself sends events without a key.
    const meaning = means[key?.length === 1 ? key.toLowerCase() : key];
    if (meaning === undefined || ctrlKey || metaKey || altKey || event.defaultPrevented) return;
    if (where === document) {
      const typing = target instanceof Element && target.matches("input, select, textarea");
      const open = document.querySelector("dialog[open]");
      if (typing || open || event.repeat || !letters().checked) return;
    }
    event.preventDefault();
    act(meaning);
  });
}

/** Fill the dialog and listen to the keys that belong to no other part of the page. */
export function startKeys() {
  element("key-list").replaceChildren(
    ...ALL.flatMap(({ shown, does }) => [
      make("dt", {}, ...shown.map((one) => make("kbd", {}, one))),
      make("dd", {}, does),
    ]),
  );
  letters().checked = localStorage.getItem(STORED) !== "off";
  const hint = () => document.body.classList.toggle("no-keys", !letters().checked);
  hint();
  letters().addEventListener("change", () => {
    if (letters().checked) localStorage.removeItem(STORED);
    else localStorage.setItem(STORED, "off");
    hint();
  });
  const list = () => dialog().showModal();
  element("list-keys").addEventListener("click", list);
  element("close-keys").addEventListener("click", () => dialog().close());
  onKeys(document, LIST, list);
  onKeys(document, PICK, () => {
    PICKERS.map(element)
      .find((one) => one.checkVisibility() && !one.matches(":disabled"))
      ?.focus();
  });
}
