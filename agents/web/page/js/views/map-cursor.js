// The current place of the map, by pointer or keyboard; and dragging, the wheel and two fingers.

import { element } from "../dom.js";
import { pointAt } from "../charts/tooltip.js";
import { PLACES, ZOOM } from "../shell/keys.js";
import { MARGIN } from "./map-picture.js";

/** @typedef {import("./map-picture.js").View} View */

const STILL = 4; // Pixels that a click may move.

/** @type {[number, number]} */
let shape = [1, 1];
/** @type {View} */
let view = { row: 0, column: 0, rows: 1, columns: 1 };
/** @type {number | null} The cell that was pointed at last. */
let at = null;

/**
 * @param {[number, number]} now Rows and columns.
 * @param {View} seen The part of them that is shown.
 * @param {(cell: number) => Tip} tip
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

/**
 * A drag or a finger moves the map, and the wheel or two fingers zoom around where they are. What
 * they do not change stays the browser's: a wheel scrolls the page past a map that is whole.
 *
 * @param {(by: number, row: number, column: number) => boolean} zoomAt Places may be fractions.
 *   Returns whether that is possible.
 * @param {(rows: number, columns: number) => boolean} moveBy
 */
export function startGestures(zoomAt, moveBy) {
  const frame = element("map-frame");
  /** @type {Map<number, {x: number, y: number}>} */
  const down = new Map();
  let moved = false;
  /** @param {{x: number, y: number}} point @returns {[number, number]} */
  const placeAt = ({ x, y }) => {
    const { left, top, wide, high } = grid();
    return [view.row + (y - top) / high, view.column + (x - left) / wide];
  };
  /** The middle of all pointers, and how far they are from it. */
  const spread = () => {
    const all = [...down.values()];
    const [x, y] = /** @type {const} */ (["x", "y"]).map(
      (side) => all.reduce((sum, one) => sum + one[side], 0) / all.length,
    );
    return { x, y, far: Math.max(1, Math.hypot(all[0].x - x, all[0].y - y)) };
  };
  frame.addEventListener(
    "wheel",
    (event) => {
      const by = 2 ** (-event.deltaY / (event.deltaMode ? 12 : 400));
      if (zoomAt(by, ...placeAt(event))) event.preventDefault();
    },
    { passive: false },
  );
  frame.addEventListener("pointerdown", ({ pointerId, x, y, button }) => {
    if (button === 0) down.set(pointerId, { x, y });
    moved = false;
  });
  frame.addEventListener("pointermove", ({ pointerId, x, y }) => {
    const from = down.get(pointerId);
    if (!from || (!moved && Math.hypot(x - from.x, y - from.y) < STILL)) return;
    if (!moved) frame.setPointerCapture(pointerId);
    moved = true;
    const before = spread();
    down.set(pointerId, { x, y });
    const after = spread();
    if (down.size > 1) zoomAt(after.far / before.far, ...placeAt(after));
    const { wide, high } = grid();
    moveBy((before.y - after.y) / high, (before.x - after.x) / wide);
  });
  for (const kind of /** @type {const} */ (["pointerup", "pointercancel"])) {
    addEventListener(kind, ({ pointerId }) => down.delete(pointerId));
  }
  // Else the browser would scroll, and end the pointers' events.
  frame.addEventListener(
    "touchmove",
    (event) => {
      if (event.touches.length > 1 || moveBy(0, 0)) event.preventDefault();
    },
    { passive: false },
  );
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
