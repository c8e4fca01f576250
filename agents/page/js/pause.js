// Pausing the page: updates are counted meanwhile, not drawn.

import { element, say } from "./dom.js";

let paused = false;
let missed = 0;

function show() {
  const updates = `${missed} ${missed === 1 ? "update" : "updates"} waiting`;
  say(element("pause"), paused ? `▶ Go on${missed ? `, ${updates}` : ""}` : "❚❚ Pause");
  element("pause").setAttribute("aria-pressed", String(paused));
}

/** @returns {boolean} Whether the page is paused; if so, this update is counted. */
export function isPaused() {
  if (!paused) return false;
  missed += 1;
  show();
  return true;
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
  document.addEventListener("keydown", ({ key, target, ctrlKey, metaKey, altKey }) => {
    const typing = target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
    if (key === "p" && !typing && !ctrlKey && !metaKey && !altKey) turn();
  });
  show();
}
