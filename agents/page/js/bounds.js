// Which bounds are shown, and what they promise.

import { confidenceText } from "./format.js";

/** @typedef {import("./types.js").Collection} Collection */
/** @typedef {import("./types.js").Estimate} Estimate */
/** @typedef {import("./types.js").WindowState} WindowState */

// Whoever watches an open window looks many times: only anytime bounds hold at all of these moments.
const WATCHED = "anytime";
const BY_LIKELIHOOD = "profile"; // The beginning of these methods' names.

/**
 * Return the method to ask for: the one chosen, else the collection's own, else what may be watched.
 *
 * @param {Collection} collection
 * @param {WindowState} window
 * @param {string} choice Empty for no choice.
 */
export function methodFor(collection, window, choice) {
  if (choice && isOffered(collection, choice)) return choice;
  const own = window.final || collection.method.startsWith(WATCHED);
  return own || !isOffered(collection, WATCHED) ? collection.method : WATCHED;
}

/**
 * Return whether a collection's mechanism has what a method needs, and its estimand too.
 *
 * @param {Collection} collection
 * @param {string} method
 */
export function isOffered(collection, method) {
  if (collection.attribute && collection.estimand === "respondents" && method.startsWith(WATCHED)) {
    return false; // Of an attribute ever more respondents are asked about than report on it.
  }
  return collection.likelihood || !method.startsWith(BY_LIKELIHOOD);
}

/** @param {Estimate} estimate */
function momentsOf({ method = "", final }) {
  if (method.startsWith(WATCHED)) {
    return "at every moment of the window at once, however often you look";
  }
  return final
    ? "for the window as a whole, now that it is closed"
    : "at one moment only: they are too narrow to be watched while the window is open";
}

const WHOSE = new Map([["active", "the devices that were active, reporting or not"]]);

/**
 * @param {Estimate} estimate
 * @param {string} together What they hold for.
 */
export function boundsText(estimate, together) {
  const level = confidenceText(estimate.confidence ?? 0);
  return (
    `Bounds hold with ${level} confidence ${together}, ${momentsOf(estimate)} ` +
    `(method ${estimate.method}, of ${WHOSE.get(estimate.estimand ?? "") ?? `the ${estimate.estimand}`}).`
  );
}
