// The table of a map's cells, a page at a time; made only while it is open.

import { element, figure, say } from "./dom.js";
import { labelText, percentText } from "./format.js";
import { fillTable } from "./table.js";

/** @typedef {import("./map-worker.js").Columns} Columns */

const PAGE = 50;
let page = 0;
/** @type {() => void} */
let again = () => {};

const details = () => /** @type {HTMLDetailsElement} */ (element("cells"));
const order = () => /** @type {HTMLSelectElement} */ (element("cell-order")).value;

/** Listen to the controls of the table. */
export function startCells() {
  details().addEventListener("toggle", () => again());
  element("cell-order").addEventListener("change", () => turn(-Infinity));
  element("cells-back").addEventListener("click", () => turn(page - 1));
  element("cells-on").addEventListener("click", () => turn(page + 1));
}

/** @param {number} to */
function turn(to) {
  page = Math.max(0, to);
  again();
}

/**
 * @param {Columns} columns
 * @param {(cell: number) => import("./types.js").Label} label
 * @param {number} decimals
 */
export function drawCells(columns, label, decimals) {
  again = () => {
    if (details().open) fill(columns, label, decimals);
  };
  again();
}

/**
 * @param {Columns} columns
 * @param {(cell: number) => import("./types.js").Label} label
 * @param {number} decimals
 */
function fill({ share, low, high, influence }, label, decimals) {
  const cells = Array.from(share.keys());
  if (order() === "largest") cells.sort((a, b) => share[b] - share[a] || a - b);
  const pages = Math.ceil(cells.length / PAGE);
  page = Math.min(page, pages - 1);
  say(element("cells-page"), `Page ${page + 1} of ${pages.toLocaleString("en")}`);
  /** @type {HTMLButtonElement} */ (element("cells-back")).disabled = page === 0;
  /** @type {HTMLButtonElement} */ (element("cells-on")).disabled = page === pages - 1;
  /** @param {number} value @param {number} digits */
  const percent = (value, digits) => {
    const known = Number.isNaN(value) ? null : value;
    return figure(percentText(known, digits), known);
  };
  fillTable(
    /** @type {HTMLTableElement} */ (element("cell-rows")),
    [
      { title: "place", kind: "name" },
      { title: "share" },
      { title: "low" },
      { title: "high" },
      { title: "per forged report", kind: "more" },
    ],
    cells
      .slice(page * PAGE, (page + 1) * PAGE)
      .map((cell) => [
        labelText(label(cell)),
        percent(share[cell], decimals),
        percent(low[cell], decimals),
        percent(high[cell], decimals),
        percent(influence[cell], decimals + 1),
      ]),
  );
}
