// Which bounds are shown, and what they promise.

import { confidenceText } from "./format.js";

// People look at an open window many times, and only anytime bounds hold at all these moments.
const WATCHED = "anytime";

/**
 * Return the method to ask for: the chosen one, anytime while open, or the collection's own.
 *
 * @param {Collection} collection
 * @param {WindowState} window
 * @param {string} choice Empty for no choice.
 */
export function methodFor(collection, window, choice) {
  if (choice && isOffered(collection, choice)) return choice;
  const own = window.final || collection.method === WATCHED;
  return own || !isOffered(collection, WATCHED) ? collection.method : WATCHED;
}

/**
 * Return whether a collection's mechanism and estimand support a method.
 *
 * @param {Collection} collection
 * @param {string} method
 */
export function isOffered(collection, method) {
  // Anytime bounds do not exist for an attribute's respondents.
  return !(collection.attribute && collection.estimand === "respondents" && method === WATCHED);
}

/** @param {Estimate} estimate */
function momentsOf({ method = "", final }) {
  if (method === WATCHED) {
    return "at every moment of the window at once, however often you look";
  }
  return final
    ? "for the window as a whole, now that it is closed"
    : "at one moment only: they are too narrow to be watched while the window is open";
}

/** @param {string} kind Of estimates, which `ask` moves. */
export const withinText = (kind = "unbiased") =>
  `Estimates are shown within their bounds; downloads have the ${kind} ones, which may lie outside.`;

const WHOSE = new Map([["active", "the devices that were active, reporting or not"]]);

/** @param {Estimate} estimate @param {string} together What they hold for at once. */
export function boundsText(estimate, together) {
  const { projection = "none", areas } = estimate;
  const projected = projection !== "none" && !areas; // Areas never are.
  const level = confidenceText(estimate.confidence ?? 0);
  return (
    `Bounds hold with ${level} confidence ${together}, ${momentsOf(estimate)} ` +
    `(method ${estimate.method}, for ${WHOSE.get(estimate.estimand ?? "") ?? `the ${estimate.estimand}`}). ` +
    (projected
      ? `Shares are projected (${projection}), slightly biased; bounds are not. ${withinText("projected")}`
      : withinText())
  );
}
