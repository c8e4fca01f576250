// The cell under the pointer, or under the keyboard: arrows, Page Up and Down, Home and End.

import { element } from "./dom.js";

/** @type {[number, number]} */
let shape = [1, 1];
/** @type {[number, number] | null} */
let at = null;
/** @type {(cell: number) => void} */
let tell = () => {};

const LEAP = 10;
/** @type {Record<string, [number, number]>} */
const MOVES = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  PageUp: [-LEAP, 0],
  PageDown: [LEAP, 0],
  Home: [0, -Infinity],
  End: [0, Infinity],
};

/** @param {(cell: number) => void} told Called with each cell that is pointed at. */
export function startCursor(told) {
  tell = told;
  const map = element("map-frame");
  map.addEventListener("keydown", (event) => {
    const move = MOVES[event.key];
    if (!move) return;
    event.preventDefault();
    const [row, column] = at ?? [0, 0];
    point(row + move[0], column + move[1]);
  });
  map.addEventListener("focus", () => {
    const [row, column] = at ?? [0, 0];
    point(row, column);
  });
  for (const kind of /** @type {const} */ (["pointermove", "pointerdown"])) {
    map.addEventListener(kind, ({ clientX, clientY }) => {
      const box = element("map-canvas").getBoundingClientRect();
      const row = Math.floor(((clientY - box.top) / box.height) * shape[0]);
      point(row, Math.floor(((clientX - box.left) / box.width) * shape[1]));
    });
  }
}

/** @param {number[]} now Rows and columns. */
export function fitCursor(now) {
  if (now[0] !== shape[0] || now[1] !== shape[1]) at = null;
  shape = [now[0], now[1]];
  element("map-cursor").hidden = at === null;
  return at === null ? null : at[0] * shape[1] + at[1];
}

/**
 * @param {number} row
 * @param {number} column
 */
function point(row, column) {
  at = [Math.min(shape[0] - 1, Math.max(0, row)), Math.min(shape[1] - 1, Math.max(0, column))];
  const cursor = element("map-cursor");
  cursor.hidden = false;
  cursor.style.top = `${(100 * (at[0] + 0.5)) / shape[0]}%`;
  cursor.style.left = `${(100 * (at[1] + 0.5)) / shape[1]}%`;
  cursor.style.width = `max(12px, ${100 / shape[1]}%)`;
  cursor.style.height = `max(12px, ${100 / shape[0]}%)`;
  if (document.activeElement === element("map-frame")) {
    cursor.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  tell(at[0] * shape[1] + at[1]);
}
