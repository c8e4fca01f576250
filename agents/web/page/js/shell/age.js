// How old the shown data are, in the header: a warning once the worker is gone.

import { element, say } from "../dom.js";
import { ageText, momentText } from "../format.js";
import { nowMs } from "./clock.js";
import { isPaused } from "./pause.js";

const LATE_MS = 45_000; // Three of the slower polls.

let answered = 0;
let gone = false;

function show() {
  const age = nowMs() - answered;
  const late = gone || (age > LATE_MS && !isPaused());
  element("age").hidden = !answered;
  element("age").classList.toggle("late", late);
  say(element("age-words"), late ? "not current, updated" : "updated");
  say(element("age-text"), `${ageText(age)} ago`);
}

/** From now on, tell the age every second. */
export function startAge() {
  setInterval(show, 1000);
}

/** @param {boolean} came Whether an answer was drawn, so that the shown data are current. */
export function noteAnswer(came) {
  gone = !came;
  if (came) answered = nowMs();
  show();
}

/** @returns {string} From when the shown data are; empty if there are none. */
export const sinceText = () =>
  answered ? ` The data shown are from ${momentText(answered)} UTC.` : "";
