// The current place of the map, by pointer or keyboard.

import { element } from "../dom.js";
import { onKeys, PLACES, ZOOM } from "../shell/keys.js";
import { MARGIN } from "./map-picture.js";

/** @typedef {import("./map-picture.js").View} View */

/** @type {[number, number]} */
let shape = [1, 1];
/** @type {View} */
let view = { row: 0, column: 0, rows: 1, columns: 1 };
/** @type {[number, number] | null} */
let at = null;
/** @type {(cell: number) => void} */
let tell = () => {};

/**
 * @param {(cell: number) => void} told Called with each place that is pointed at.
 * @param {(by: number) => void} zoom
 */
export function startCursor(told, zoom) {
  tell = told;
  const map = element("map-frame");
  onKeys(map, ZOOM, zoom);
  onKeys(map, PLACES, ([down, across]) => {
    const [row, column] = at ?? [view.row, view.column];
    point(row + down, column + across);
  });
  map.addEventListener("focus", () => {
    const [row, column] = at ?? [view.row, view.column];
    point(row, column);
  });
  for (const kind of /** @type {const} */ (["pointermove", "pointerdown"])) {
    map.addEventListener(kind, ({ clientX, clientY }) => {
      const box = element("map-canvas").getBoundingClientRect();
      const wide = (box.width - MARGIN.left - MARGIN.right) / view.columns;
      const high = (box.height - MARGIN.top - MARGIN.bottom) / view.rows;
      const row = Math.floor((clientY - box.top - MARGIN.top) / high);
      const column = Math.floor((clientX - box.left - MARGIN.left) / wide);
      if (row < 0 || column < 0 || row >= view.rows || column >= view.columns) return;
      point(view.row + row, view.column + column);
    });
  }
}

/**
 * @param {[number, number]} now Rows and columns.
 * @param {View} seen The part of them that is shown.
 * @returns {number | null} The current place, if it is in that part.
 */
export function fitCursor(now, seen) {
  if (now[0] !== shape[0] || now[1] !== shape[1]) at = null;
  [shape, view] = [now, seen];
  const [row, column] = at ?? [-1, -1];
  const inside =
    row >= view.row &&
    row < view.row + view.rows &&
    column >= view.column &&
    column < view.column + view.columns;
  if (!inside) at = null;
  place();
  return at === null ? null : at[0] * shape[1] + at[1];
}

/**
 * @param {number} row
 * @param {number} column
 */
function point(row, column) {
  /** @param {number} one @param {number} first @param {number} count */
  const within = (one, first, count) => Math.min(first + count - 1, Math.max(first, one));
  at = [within(row, view.row, view.rows), within(column, view.column, view.columns)];
  place();
  tell(at[0] * shape[1] + at[1]);
}

function place() {
  const cursor = element("map-cursor");
  cursor.hidden = at === null;
  if (at === null) return;
  const box = element("map-canvas").getBoundingClientRect();
  const wide = (box.width - MARGIN.left - MARGIN.right) / view.columns;
  const high = (box.height - MARGIN.top - MARGIN.bottom) / view.rows;
  cursor.style.top = `${MARGIN.top + (at[0] - view.row + 0.5) * high}px`;
  cursor.style.left = `${MARGIN.left + (at[1] - view.column + 0.5) * wide}px`;
  cursor.style.width = `${Math.max(12, wide + 2)}px`;
  cursor.style.height = `${Math.max(12, high + 2)}px`;
}
