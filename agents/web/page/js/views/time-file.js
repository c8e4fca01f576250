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
  return windows.flatMap(({ window }, at) =>
    series.map(({ title, unit, points }) => {
      const { middle, low, high, labels } = points[at];
      const [value, from, to] = labels.length ? labels : [middle, low, high];
      const one = estimates[at];
      return {
        collection: one.collection,
        size: one.size ?? null,
        attribute: one.attribute ?? null,
        ...{ start: window.start, end: window.end, final: one.final, withheld: one.withheld },
        span_start: one.span?.start ?? null,
        span_end: one.span?.end ?? null,
        ...{ n: one.n, late: one.late ?? null, line: title, unit, value, low: from, high: to },
        estimand: one.estimand ?? null,
        confidence: one.confidence ?? null,
        method: one.method ?? null,
        simultaneous: one.simultaneous ?? null,
      };
    }),
  );
}

/** @typedef {import("../types.js").Label | boolean} Cell */

/**
 * As RFC 4180 has it; null is empty, and a bin is written as in JSON. Spreadsheets run texts that
 * begin like formulas, so an apostrophe comes before them, as in the worker's own files.
 *
 * @param {Record<string, Cell>[]} records All with the same names.
 */
export function csvOf(records) {
  /** @param {Cell} cell */
  const written = (cell) => {
    const plain = cell === null ? "" : Array.isArray(cell) ? JSON.stringify(cell) : String(cell);
    const text = typeof cell === "string" && /^[=+\-@\t\r]/.test(cell) ? `'${plain}` : plain;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [Object.keys(records[0] ?? {}), ...records.map((one) => Object.values(one))];
  return lines.map((cells) => `${cells.map(written).join(",")}\r\n`).join("");
}
