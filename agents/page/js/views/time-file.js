// The lines over time as a file: a record for each window and line, with bounds and how they hold.

/** @typedef {import("../series.js").Series} Series */
/** @typedef {import("../types.js").Estimate} Estimate */
/** @typedef {import("../types.js").WindowState} WindowState */

/** @type {ReturnType<typeof recordsOf>} */
let shown = [];

/** The lines that were drawn last. */
export const shownLines = () => shown;

/**
 * Keep what is drawn now.
 *
 * @param {WindowState[]} windows
 * @param {Estimate[]} estimates One per window.
 * @param {Series[]} series
 */
export function keepLines(windows, estimates, series) {
  shown = recordsOf(windows, estimates, series);
}

/**
 * One record for each window and line, oldest first; numbers are null where none is shown.
 *
 * @param {WindowState[]} windows
 * @param {Estimate[]} estimates One per window.
 * @param {Series[]} series
 */
function recordsOf(windows, estimates, series) {
  return windows.flatMap(({ window, final, n, late }, at) =>
    series.map(({ title, unit, points }) => {
      const { middle, low, high, texts } = points[at];
      const [value, from, to] = texts.length ? texts : [middle, low, high];
      const { withheld, estimand, confidence, method, simultaneous } = estimates[at];
      return {
        ...{ start: window.start, end: window.end, final, withheld, n, late },
        ...{ line: title, unit, value, low: from, high: to },
        estimand: estimand ?? null,
        confidence: confidence ?? null,
        method: method ?? null,
        simultaneous: simultaneous ?? null,
      };
    }),
  );
}

/**
 * As RFC 4180 has it; null is empty.
 *
 * @param {Record<string, string | number | boolean | null>[]} records All with the same names.
 */
export function csvOf(records) {
  /** @param {string | number | boolean | null} cell */
  const written = (cell) => {
    const text = cell === null ? "" : String(cell);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [Object.keys(records[0] ?? {}), ...records.map((one) => Object.values(one))];
  return lines.map((cells) => `${cells.map(written).join(",")}\r\n`).join("");
}
