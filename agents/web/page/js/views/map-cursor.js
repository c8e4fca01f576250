// The current place of the map, by pointer or keyboard.

import { element } from "../dom.js";
import { pointAt } from "../charts/tooltip.js";
import { PLACES, ZOOM } from "../shell/keys.js";
import { MARGIN } from "./map-picture.js";

/** @typedef {import("./map-picture.js").View} View */

/** @type {[number, number]} */
let shape = [1, 1];
/** @type {View} */
let view = { row: 0, column: 0, rows: 1, columns: 1 };
/** @type {number | null} The cell that was pointed at last. */
let at = null;

/**
 * @param {[number, number]} now Rows and columns.
 * @param {View} seen The part of them that is shown.
 * @param {(cell: number) => import("../charts/tooltip.js").Tip} tip
 * @param {(by: number) => void} zoom
 */
export function fitCursor(now, seen, tip, zoom) {
  if (now[0] !== shape[0] || now[1] !== shape[1]) at = null;
  [shape, view] = [now, seen];
  pointAt(element("map-frame"), {
    at: ({ clientX, clientY }) => {
      const { left, top, wide, high } = grid();
      const row = Math.floor((clientY - top) / high);
      const column = Math.floor((clientX - left) / wide);
      const inside = row >= 0 && column >= 0 && row < view.rows && column < view.columns;
      return inside ? (view.row + row) * shape[1] + view.column + column : null;
    },
    move: (cell, key) => {
      const move = PLACES.means[key];
      if (key && !move) return null;
      const [row, column] = cell === null ? [view.row, view.column] : placeOf(cell);
      const [down, across] = move ?? [0, 0];
      return (
        within(row + down, view.row, view.rows) * shape[1] +
        within(column + across, view.column, view.columns)
      );
    },
    mark,
    tip: (cell) => (isShown(cell) ? tip(cell) : null),
    act: (_, key) => {
      if (key in ZOOM.means) zoom(ZOOM.means[key]);
      return key in ZOOM.means;
    },
  });
}

/** @returns {[number, number] | null} The row and the column that were pointed at last. */
export const pointedPlace = () => (at !== null && isShown(at) ? placeOf(at) : null);

/** @param {number} cell @returns {[number, number]} */
const placeOf = (cell) => [Math.floor(cell / shape[1]), cell % shape[1]];

/** @param {number} one @param {number} first @param {number} count */
const within = (one, first, count) => Math.min(first + count - 1, Math.max(first, one));

/** @param {number} cell */
function isShown(cell) {
  const [row, column] = placeOf(cell);
  return (
    row === within(row, view.row, view.rows) && column === within(column, view.column, view.columns)
  );
}

/** Where the places are drawn, and how large one is. */
function grid() {
  const box = element("map-canvas").getBoundingClientRect();
  return {
    left: box.left + MARGIN.left,
    top: box.top + MARGIN.top,
    wide: (box.width - MARGIN.left - MARGIN.right) / view.columns,
    high: (box.height - MARGIN.top - MARGIN.bottom) / view.rows,
  };
}

/** @param {number | null} cell */
function mark(cell) {
  const cursor = element("map-cursor");
  cursor.hidden = cell === null;
  if (cell === null) return null;
  at = cell;
  const { wide, high } = grid();
  const [row, column] = placeOf(cell);
  cursor.style.top = `${MARGIN.top + (row - view.row + 0.5) * high}px`;
  cursor.style.left = `${MARGIN.left + (column - view.column + 0.5) * wide}px`;
  cursor.style.width = `${Math.max(12, wide + 2)}px`;
  cursor.style.height = `${Math.max(12, high + 2)}px`;
  return cursor.getBoundingClientRect();
}
