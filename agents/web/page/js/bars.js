// Shares with whiskers, drawn as bars next to the numbers in a table's row.

import { tickText } from "./format.js";
import { number } from "./table.js";
import { ticksOf } from "./charts/ticks.js";

/** @typedef {Bounded & {share: number | null}} Bar */
/** @typedef {{low: number, width: number}} Scale */

const WIDTH = 260; // Pixels that a scale has numbers for.

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
 * The numbers of a scale, for the head of its column.
 *
 * @param {Scale} scale
 * @param {string} unit
 * @param {boolean} [signed]
 * @returns {Tick[]}
 */
export function scaleTicks({ low, width }, unit, signed = false) {
  return ticksOf([100 * low, 100 * (low + width)], WIDTH).map((value) => ({
    at: (value - 100 * low) / width,
    text: tickText(value, unit, 6, signed),
  }));
}

/**
 * The scale of all differences, with 0 in the middle.
 *
 * @param {Bounded[]} changes
 * @returns {Scale}
 */
export function scaleAround(changes) {
  const most = Math.max(0, ...changes.flatMap(({ low, high }) => [-(low ?? 0), high ?? 0])) || 1;
  return { low: -most, width: 2 * most };
}

/**
 * The bounds of a difference, with a dot at it and a line at 0.
 *
 * @param {{value: number, low: number, high: number} | undefined} change
 * @param {Scale} scale
 * @returns {import("./table.js").Drawn | string}
 */
export function difference(change, scale) {
  if (!change) return "";
  const { value, low, high } = change;
  /** @param {number} one Percent of the width. */
  const at = (one) => (100 * (one - scale.low)) / scale.width;
  const told = low > 0 ? " rose" : high < 0 ? " fell" : "";
  return {
    className: `difference${told}`,
    style: `--at: ${at(value)}%; --low: ${at(low)}%; --span: ${at(high) - at(low)}%`,
  };
}

/**
 * A bar is one element whose style positions its parts, because many change at once.
 *
 * @param {Bar} entry
 * @param {Scale} scale
 * @param {boolean} final
 * @param {Bar | undefined} [was] The same in another window, drawn in grey below.
 * @returns {import("./table.js").Drawn}
 */
export function bar({ share, low, high }, scale, final, was) {
  /** @param {number} value Percent of the width. */
  const at = (value) => (100 * (value - scale.low)) / scale.width;
  const zero = at(0);
  const parts = [`--zero: ${zero}%`];
  if (share !== null) {
    const width = Math.abs(at(share) - zero);
    parts.push(`--at: ${at(share)}%; --from: ${Math.min(zero, at(share))}%; --width: ${width}%`);
  }
  if (low !== null && high !== null) {
    parts.push(`--low: ${at(low)}%; --span: ${at(high) - at(low)}%`);
  }
  const before = was?.share ?? null;
  let className = final ? "bar" : "bar open";
  if (was && before !== null && was.low !== null && was.high !== null) {
    className += " compared";
    const [from, middle, to] = [was.low, before, was.high].map(at);
    parts.push(`--was-low: ${from}%; --was-at: ${middle}%; --was-high: ${to}%`);
  }
  return { className, style: parts.join("; ") };
}

/**
 * The columns that `boundedCells` fills.
 *
 * @param {string} title
 * @param {Tick[]} [ticks] If all rows share a scale.
 * @returns {import("./table.js").Column[]}
 */
export const boundedColumns = (title, ticks) => [
  { title },
  { title: "bounds", kind: "chart", ticks },
  { title: "low" },
  { title: "high" },
];

/**
 * @param {Bar} entry
 * @param {(value: number | null) => string} textOf
 * @param {Scale} scale
 * @param {boolean} final
 * @param {Bar | undefined} [was]
 */
export function boundedCells(entry, textOf, scale, final, was) {
  const [share, low, high] = [entry.share, entry.low, entry.high].map((one) =>
    number(textOf(one), one),
  );
  return [share, bar(entry, scale, final, was), low, high];
}
