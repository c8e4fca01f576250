// How old the shown data are, in the header: a warning, and another state, once the worker is gone.

import { element, say } from "../dom.js";
import { ageText, zonedText } from "../format.js";
import { tellGone } from "../state.js";
import { nowMs } from "./clock.js";
import { isPaused } from "./pause.js";

const LATE_MS = 45_000; // Three of the slower polls.
// A worker that hangs is known to be gone after both together, less than 15 s.
const PROBE_MS = 5000;
const PATIENCE_MS = 8000;

let answered = 0;
let gone = false;

function show() {
  const age = nowMs() - answered;
  const late = gone || (age > LATE_MS && !isPaused());
  element("age").hidden = !answered;
  element("age").classList.toggle("late", late);
  say(element("age-words"), late ? "not current, updated" : "updated");
  say(element("age-text"), `${ageText(age)} ago`);
  tellGone(late);
}

/** Ask whether the worker is there, however long the answers to other requests take. */
async function probe() {
  if (document.visibilityState !== "visible" || !answered) return;
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), PATIENCE_MS);
  try {
    const answer = await fetch("healthz", { cache: "no-store", signal: stop.signal });
    // The browser keeps an answer that nobody reads for as long as the page is open.
    await answer.text();
  } catch {
    noteAnswer(false);
  } finally {
    clearTimeout(timer);
  }
}

/** From now on, tell the age every second. */
export function startAge() {
  setInterval(show, 1000);
  setInterval(probe, PROBE_MS);
}

/** @param {boolean} came Whether an answer was drawn, so that the shown data are current. */
export function noteAnswer(came) {
  gone = !came;
  if (came) answered = nowMs();
  show();
}

/** @returns {string} From when the shown data are; empty if there are none. */
export const sinceText = () => (answered ? ` The data shown are from ${zonedText(answered)}.` : "");
