// Pausing the page: updates are counted meanwhile, not drawn.

import { element, say } from "../dom.js";
import { onKeys, PAUSE } from "./keys.js";

let paused = false;
let missed = 0;

function show() {
  const updates = `${missed} ${missed === 1 ? "update" : "updates"} waiting`;
  say(element("pause"), paused ? `▶ Go on${missed ? `, ${updates}` : ""}` : "❚❚ Pause");
  element("pause").setAttribute("aria-pressed", String(paused));
}

export const isPaused = () => paused;

/** Count an update that is not drawn. */
export function countMissed() {
  missed += 1;
  show();
}

/** @param {() => void} resumed */
export function startPause(resumed) {
  const turn = () => {
    paused = !paused;
    missed = 0;
    show();
    if (!paused) resumed();
  };
  element("pause").addEventListener("click", turn);
  onKeys(document, PAUSE, turn);
  show();
}
