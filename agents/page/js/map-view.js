// The heat map of a grid: every cell's share or one of its bounds, and what is not told from none.

import { labelOf } from "./axis.js";
import { boundsText } from "./bounds.js";
import { chosen } from "./choices.js";
import { paint, scaleOfColours } from "./colours.js";
import { element, figure, say } from "./dom.js";
import { labelText, percentText } from "./format.js";
import { askAll } from "./map-asking.js";
import { drawCells, startCells } from "./map-cells.js";
import { fitCursor, startCursor } from "./map-cursor.js";
import { colour, isDark } from "./theme.js";

/** @typedef {import("./colours.js").Rgb} Rgb */
/** @typedef {import("./map-worker.js").Columns} Columns */
/** @typedef {import("./types.js").Domain} Domain */
/** @typedef {import("./types.js").Estimate} Estimate */
/** @typedef {import("./types.js").Shown} Shown */

const MOST_CELLS = 100_000; // More values the worker does not list.

/** @type {{domain: Domain, columns: Columns} | null} */
let drawn = null;

/** @type {import("./types.js").View} */
export const mapView = {
  id: "map",
  fits: ({ domain, values }) => domain.ordered && domain.shape.length === 2 && values <= MOST_CELLS,
  update,
  restyle: redraw,
};

/** Listen to the controls of the map. */
export function startMap() {
  startCursor((cell) => {
    readOut(cell);
    // Aloud only where somebody moves: the numbers of a place change for ever.
    say(element("map-said"), element("map-readout").textContent ?? "");
  });
  startCells();
  element("pale").addEventListener("change", redraw);
}

/**
 * @param {Shown} shown
 * @param {() => boolean} current
 * @returns {Promise<Estimate>}
 */
async function update({ collection, window, method }, current) {
  const { estimate, columns } = await askAll(collection.name, window.window, method);
  if (!current() || estimate.withheld) return estimate;
  drawn = { domain: collection.domain, columns };
  say(element("map-bounds"), boundsText(estimate, "for all cells together"));
  redraw();
  return estimate;
}

/** @param {number} cell */
function labelOfCell(cell) {
  if (!drawn) return null;
  const { domain } = drawn;
  const columns = domain.shape[1];
  const label = [
    labelOf(domain, 0, Math.floor(cell / columns)),
    labelOf(domain, 1, cell % columns),
  ];
  return /** @type {import("./types.js").Label} */ (label);
}

/** Decimals that show three digits of the largest share. */
function decimals() {
  const largest = drawn ? drawn.columns.share.reduce((a, b) => (b > a ? b : a), 0) : 0;
  return largest > 0 ? Math.min(6, Math.max(1, 2 - Math.floor(Math.log10(100 * largest)))) : 2;
}

function redraw() {
  if (!drawn) return;
  const { domain, columns } = drawn;
  const measure = /** @type {"share" | "low" | "high"} */ (chosen("measure") || "share");
  const values = columns[measure];
  const pale = new Uint8Array(values.length);
  const wanted = /** @type {HTMLInputElement} */ (element("pale")).checked;
  let certain = 0;
  let highest = 0;
  let highestOfAll = 0;
  for (let cell = 0; cell < values.length; cell += 1) {
    const unsure = !(columns.low[cell] > 0 || columns.high[cell] < 0);
    if (columns.low[cell] > 0) certain += 1;
    if (unsure && wanted) pale[cell] = 1;
    if (!pale[cell] && values[cell] > highest) highest = values[cell];
    if (values[cell] > highestOfAll) highestOfAll = values[cell];
  }
  const range = { low: 0, high: highest || highestOfAll || 1 };
  say(
    element("map-sum"),
    `${certain.toLocaleString("en")} of ${values.length.toLocaleString("en")} cells have ` +
      "bounds above 0, the others have not.",
  );
  draw(domain, values, pale, range);
  drawLegend(range, measure);
  drawCells(columns, labelOfCell, decimals());
  const cell = fitCursor(domain.shape);
  if (cell !== null) readOut(cell);
}

/** @returns {{table: Uint8ClampedArray, grey: Rgb}} */
function colours() {
  const parts = colour("unsure").match(/\d+/g) ?? [];
  return { table: scaleOfColours(isDark()), grey: /** @type {Rgb} */ (parts.map(Number)) };
}

/**
 * @param {Domain} domain
 * @param {Float64Array} values
 * @param {Uint8Array} pale
 * @param {{low: number, high: number}} range
 */
function draw({ shape: [rows, columns] }, values, pale, range) {
  const canvas = /** @type {HTMLCanvasElement} */ (element("map-canvas"));
  if (canvas.width !== columns || canvas.height !== rows) {
    canvas.width = columns;
    canvas.height = rows;
    // As wide as there is room, never higher than what can be seen at once, every cell visible.
    element("map-frame").style.maxWidth = `max(${2 * columns}px, ${(65 * columns) / rows}vh)`;
    element("map-frame").style.minWidth = `${2 * columns}px`;
    element("map-frame").style.aspectRatio = `${columns} / ${rows}`;
  }
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = pen.createImageData(columns, rows);
  paint(image.data, values, pale, range, colours());
  pen.putImageData(image, 0, 0);
}

/**
 * @param {{low: number, high: number}} range
 * @param {string} measure
 */
function drawLegend({ low, high }, measure) {
  const canvas = /** @type {HTMLCanvasElement} */ (element("legend"));
  const steps = 256;
  canvas.width = steps;
  canvas.height = 1;
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = pen.createImageData(steps, 1);
  const ramp = Float64Array.from({ length: steps }, (_, step) => step);
  paint(image.data, ramp, new Uint8Array(steps), { low: 0, high: steps - 1 }, colours());
  pen.putImageData(image, 0, 0);
  const texts = [low, (low + high) / 2, high].map((share) => percentText(share, decimals()));
  texts[0] = `${texts[0]} or less`;
  texts.forEach((text, place) => say(element(`legend-${place}`), text));
  say(
    element("legend-title"),
    measure === "share" ? "share of reports" : `${measure} bound of the share`,
  );
}

/** @param {number} cell */
function readOut(cell) {
  if (!drawn) return;
  const { share, low, high } = drawn.columns;
  /** @param {number} value */
  const percent = (value) => {
    const known = Number.isNaN(value) ? null : value;
    return figure(percentText(known, decimals()), known);
  };
  const unsure = !(low[cell] > 0 || high[cell] < 0);
  element("map-readout").replaceChildren(
    `Place ${labelText(labelOfCell(cell))}: `,
    percent(share[cell]),
    ", between ",
    percent(low[cell]),
    " and ",
    percent(high[cell]),
    unsure ? "; not told from 0" : "",
  );
}
