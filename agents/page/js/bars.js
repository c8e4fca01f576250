// Shares with whiskers, drawn as boxes: the row of a table beside the numbers.

import { make } from "./dom.js";

/** @typedef {import("./format.js").Bounded} Bounded */
/** @typedef {Bounded & {share: number | null}} Bar */
/** @typedef {{low: number, width: number}} Scale */

/**
 * The scale of all bars of a table: from the lowest bound (or 0) to the highest.
 *
 * @param {Bar[]} entries
 * @returns {Scale}
 */
export function scaleOf(entries) {
  const ends = entries.flatMap(({ low, high, share }) => [low ?? 0, high ?? 0, share ?? 0]);
  const low = Math.min(0, ...ends);
  const high = Math.max(0, ...ends);
  return { low, width: high > low ? high - low : 1 };
}

/**
 * @param {string} kind
 * @param {number} left Percent.
 * @param {number} [width] Percent.
 */
function piece(kind, left, width) {
  const made = make("i", { className: kind });
  made.style.left = `${left}%`;
  if (width !== undefined) made.style.width = `${width}%`;
  return made;
}

/**
 * @param {Bar} entry
 * @param {Scale} scale
 * @param {boolean} final
 */
export function bar(entry, scale, final) {
  const line = make("div", { className: final ? "bar" : "bar open", "aria-hidden": "true" });
  /** @param {number} share */
  const at = (share) => (100 * (share - scale.low)) / scale.width;
  if (entry.share !== null) {
    const from = Math.min(at(0), at(entry.share));
    line.append(piece("fill", from, Math.max(at(0), at(entry.share)) - from));
  }
  line.append(piece("zero", at(0)));
  if (entry.low !== null && entry.high !== null) {
    line.append(piece("whisker", at(entry.low), at(entry.high) - at(entry.low)));
  }
  if (entry.share !== null) line.append(piece("mark", at(entry.share)));
  return line;
}
