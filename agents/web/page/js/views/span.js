// How many windows are drawn over time, offered as the time that they span.

import { choose, chosen } from "../choices.js";
import { element, make, say } from "../dom.js";
import { durationText } from "../format.js";

const SPANS = [12, 24, 48, 96];
const DEFAULT = 24;

/** @returns {number} The number of windows that is chosen. */
export const spanOf = () => SPANS.find((one) => `${one}` === chosen("last")) ?? DEFAULT;

/** @param {() => void} changed */
export function startSpans(changed) {
  element("spans").append(
    ...SPANS.map((one) => {
      const button = make("button", { type: "button" });
      button.addEventListener("click", () => {
        choose({ last: `${one}` });
        changed();
      });
      return button;
    }),
  );
}

/** @param {import("../types.js").Collection} collection */
export function drawSpans({ window }) {
  SPANS.forEach((one, at) => {
    const button = element("spans").children[at];
    say(/** @type {HTMLElement} */ (button), durationText(one * window.hop_ms));
    button.setAttribute("aria-pressed", String(one === spanOf()));
  });
}
