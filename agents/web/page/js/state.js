// The state of a collection, and of the window that is shown, in a word: the chip of every view.

import { make, say } from "./dom.js";
import { ageText, countText, momentText, partText } from "./format.js";
import {
  MANY_REJECTED,
  nextOf,
  pastOf,
  problemWord,
  rejectedPart,
  waitOf,
  whichText,
} from "./health.js";
import { nowMs } from "./shell/clock.js";

/** @typedef {{word: string, much?: string, said: string}} State A word, its amount, and why. */

/** @type {Record<string, [string, string, string]>} Class, singular and plural; worst first. */
export const STATES = {
  Stopped: ["alarmed", "has stopped", "have stopped"],
  Problem: ["alarmed", "has a problem", "have a problem"],
  Waiting: ["alarmed", "waits for a partition", "wait for a partition"],
  Rejecting: ["open", "rejects reports", "reject reports"],
  Withheld: ["quiet", "is withheld", "are withheld"],
  Open: ["open", "has no final window yet", "have no final window yet"],
  Behind: ["quiet", "is behind the clock", "are behind the clock"],
};

/**
 * What keeps windows from becoming final, if anything does.
 *
 * @param {Pick<Shown, "collection" | "windows" | "status">} known
 * @returns {State | null}
 */
function hindrance({ collection, windows, status }) {
  if (status.problems.length) {
    return { word: problemWord(status), said: status.problems.join(" ") };
  }
  const wait = waitOf(collection, windows, status);
  if (wait) {
    const much = briefAge(wait.reached - wait.due);
    return { word: "Waiting", much, said: `for ${whichText(wait, status)}` };
  }
  const past = pastOf(collection, status);
  if (past === null) return null;
  const much = briefAge(nowMs() - past);
  return { word: "Behind", much, said: `newest report of ${momentText(past)}` };
}

/** @param {number} ms */
const briefAge = (ms) => ageText(ms).replace("minutes", "min").replace("hours", "h");

/** @param {Pick<Shown, "collection" | "windows" | "status">} known @returns {State} */
export function stateOf(known) {
  const { collection, windows, status } = known;
  const hindered = hindrance(known);
  if (hindered && hindered.word !== "Behind") return hindered;
  const part = rejectedPart(status);
  if (part >= MANY_REJECTED) return { word: "Rejecting", much: partText(part), said: "of all" };
  const final = windows.findLast((one) => one.final);
  if (!final) return { word: "Open", said: "no window is final yet" };
  const { minimum } = collection;
  if (final.n < minimum) {
    return { word: "Withheld", said: `${countText(final.n)} of ${countText(minimum)} reports` };
  }
  const next = nextOf(collection, windows);
  return hindered ?? { word: "Current", said: next ? `next final ${momentText(next.due)}` : "" };
}

/**
 * The state of the window that is shown. A final window that others have followed stays final,
 * whatever they wait for.
 *
 * @param {Shown} shown
 * @param {boolean} final
 * @param {boolean} withheld
 * @returns {State}
 */
export function windowStateOf(shown, final, withheld) {
  const newest = shown.windows.findLast((one) => one.final);
  const older = shown.window.window.end !== newest?.window.end;
  const hindered = final && older ? null : hindrance(shown);
  if (hindered && !(withheld && hindered.word === "Behind")) return hindered;
  return { word: withheld ? "Withheld" : final ? "Final" : "Open", said: "" };
}

let gone = false;

/**
 * Fill a chip, which says "Not current" while no answers come.
 *
 * @template {HTMLElement} Chip
 * @param {Chip} chip
 * @param {State} state
 */
export function fillChip(chip, { word, much }) {
  chip.className = `badge ${STATES[word]?.[0] ?? "final"}`;
  chip.dataset.state = much ? `${word} ${much}` : word;
  say(chip, gone ? "Not current" : chip.dataset.state);
  return chip;
}

/** @param {State} state */
export const chipOf = (state) => fillChip(make("span", {}), state);

/** @param {boolean} now Whether the worker does not answer. */
export function tellGone(now) {
  if (now === gone) return;
  gone = now;
  document.body.classList.toggle("gone", gone);
  for (const chip of document.querySelectorAll(".badge[data-state]")) {
    const { dataset } = /** @type {HTMLElement} */ (chip);
    say(/** @type {HTMLElement} */ (chip), gone ? "Not current" : `${dataset.state}`);
  }
}
