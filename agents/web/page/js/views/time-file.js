// The lines over time as a file: a record for each window and line, with bounds and how they hold.

/** @type {ReturnType<typeof recordsOf>} */
let shown = [];

/** The lines that were drawn last. */
export const shownLines = () => shown;

/** @param {Series[]} series What is drawn now. */
export function keepLines(series) {
  shown = recordsOf(series);
}

/**
 * One record for each window and line, oldest first; numbers are null where none is shown.
 *
 * @param {Series[]} series
 */
function recordsOf(series) {
  return (series[0]?.points ?? []).flatMap(({ spot }, at) =>
    series.map(({ title, unit, points }) => {
      const { middle, low, high, labels } = points[at];
      const [value, from, to] = labels.length ? labels : [middle, low, high];
      const { window, final, withheld, n, late, of } = spot;
      return {
        ...{ collection: of.collection, size: of.size, attribute: of.attribute ?? null },
        ...{ start: window.start, end: window.end, final, withheld, n, late },
        ...{ line: title.replace(/[\u2068\u2069]/g, ""), unit, value, low: from, high: to },
        ...{ estimand: of.estimand, confidence: of.confidence, method: of.method },
        simultaneous: true,
      };
    }),
  );
}

/** @typedef {Label | boolean} Cell */

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
