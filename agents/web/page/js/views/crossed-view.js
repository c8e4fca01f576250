// The two-way table of a pair of attributes: one down, the other across, each cell with its bounds.

import { ask, estimatePath } from "../api.js";
import { boundsText } from "../bounds.js";
import { element, figure, make, say } from "../dom.js";
import { countText, decimalsFor, forgedText, labelText, percentText } from "../format.js";
import { onKeys, PLACES } from "../shell/keys.js";
import { leaderText } from "./changes.js";
import { end, pointAt, show } from "../charts/tooltip.js";
import { inkOn, painter, rangeOfShares } from "./map-picture.js";

/** @typedef {{names: string[], down: string[], across: string[], cells: ValueEntry[][]}} Crossed */

const MOST_CELLS = 1_000; // More are listed as values.
const ORDER = new Intl.Collator("en", { numeric: true });

/** @type {Crossed | null} */
let drawn = null;

/** @type {View} */
export const crossedView = {
  id: "crossed",
  fits: ({ domain, values }) => domain.kind === "pair" && values <= MOST_CELLS,
  update,
  restyle: paint,
};

const table = () => /** @type {HTMLTableElement} */ (element("crossed-rows"));

/** Keys move from cell to cell; one cell is in the tab order. */
export function startCrossed() {
  onKeys(table(), PLACES, ([down, across]) => {
    const cell = document.activeElement?.closest("td");
    if (!cell) return;
    const row = /** @type {HTMLTableRowElement} */ (cell.parentElement);
    // The first cell of each row is its header.
    point(row.sectionRowIndex + down, cell.cellIndex - 1 + across)?.focus();
  });
  table().addEventListener("focusin", ({ target }) => {
    const cell = /** @type {Element} */ (target).closest("td");
    if (!cell) return;
    const row = /** @type {HTMLTableRowElement} */ (cell.parentElement);
    point(row.sectionRowIndex, cell.cellIndex - 1);
    show(table(), cell, true);
  });
  table().addEventListener("focusout", end);
}

/** @param {Shown} shown @param {() => boolean} current @returns {Promise<Estimate>} */
async function update({ collection, window, method }, current) {
  /** @type {Estimate} */
  const estimate = await ask(
    estimatePath(collection.name, window.window, { top: "all", simultaneous: true, method }),
  );
  if (!current() || estimate.withheld) return estimate;
  const entries = estimate.distribution ?? [];
  drawn = crossed((collection.attribute ?? "").split(":"), entries, collection.domain.parts);
  say(element("crossed-sum"), leaderText(entries, collection));
  say(
    element("crossed-bounds"),
    "Colour is the share, on a logarithmic scale; a cell whose bounds include 0 has no colour. " +
      boundsText(estimate, "for all cells together"),
  );
  fill();
  paint();
  pointAt(table(), pointed, false);
  return estimate;
}

/**
 * @param {string[]} names
 * @param {ValueEntry[]} entries
 * @param {Domain[]} [parts]
 * @returns {Crossed}
 */
function crossed(names, entries, parts) {
  /** @param {0 | 1} place */
  const texts = (place) =>
    entries.map(({ value }) => labelText(/** @type {Label[]} */ (value)[place], parts?.[place]));
  const [first, second] = [texts(0), texts(1)];
  const [down, across] = [first, second].map((all) => [...new Set(all)].sort(ORDER.compare));
  const of = new Map(entries.map((entry, at) => [`${first[at]}\n${second[at]}`, entry]));
  const cells = down.map((row) =>
    across.map((column) => /** @type {ValueEntry} */ (of.get(`${row}\n${column}`))),
  );
  return { names, down, across, cells };
}

/** Change only what differs, so that readers and the current cell are not disturbed. */
function fill() {
  if (!drawn) return;
  const { names, down, across, cells } = drawn;
  const whole = table();
  const titles = JSON.stringify([names, down, across]);
  if (whole.dataset.titles !== titles) {
    whole.dataset.titles = titles;
    const corner = make("th", { scope: "col", role: "columnheader" }, names.join(" by "));
    const heads = across.map((text) => make("th", { scope: "col", role: "columnheader" }, text));
    whole.replaceChildren(
      ...(whole.caption ? [whole.caption] : []),
      make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, corner, ...heads)),
      make("tbody", { role: "rowgroup" }, ...down.map((text) => rowOf(text, across))),
    );
    point(0, 0);
  }
  const decimals = decimalsFor(cells.flat());
  /** @param {number | null} share */
  const percent = (share) => percentText(share, decimals);
  cells.forEach((row, y) =>
    row.forEach(({ share, low, high }, x) => {
      const cell = make(
        "td",
        {},
        figure(percent(share), share),
        make("small", {}, figure(percent(low), low), " to ", figure(percent(high), high)),
      );
      const shown = cellAt(y, x);
      if (shown && shown.innerHTML !== cell.innerHTML) shown.replaceChildren(...cell.childNodes);
    }),
  );
}

/** @param {string} text @param {string[]} across */
function rowOf(text, across) {
  const head = make("th", { scope: "row", role: "rowheader", className: "name" }, text);
  const cells = across.map((title) =>
    make("td", { role: "gridcell", tabIndex: -1, "data-title": title }),
  );
  return make("tr", { role: "row" }, head, ...cells);
}

/** @param {number} row @param {number} column */
function cellAt(row, column) {
  return table().tBodies[0]?.rows[row]?.cells[column + 1];
}

/**
 * Put the nearest cell into the tab order, and return it.
 *
 * @param {number} row
 * @param {number} column
 */
function point(row, column) {
  if (!drawn) return null;
  /** @param {number} at @param {number} count */
  const within = (at, count) => Math.min(count - 1, Math.max(0, at));
  const cell = cellAt(within(row, drawn.down.length), within(column, drawn.across.length));
  for (const other of table().querySelectorAll('td[tabindex="0"]')) {
    if (other !== cell) /** @type {HTMLElement} */ (other).tabIndex = -1;
  }
  if (cell) cell.tabIndex = 0;
  return cell;
}

function paint() {
  if (!drawn) return;
  const shades = painter(rangeOfShares(drawn.cells.flat().map(({ share }) => share)));
  drawn.cells.forEach((row, y) =>
    row.forEach(({ share, low }, x) => {
      const cell = cellAt(y, x);
      if (!cell) return;
      const told = low !== null && low > 0;
      cell.style.background = told ? shades(share) : "";
      cell.style.color = told ? inkOn(shades(share)) : "";
    }),
  );
}

/** @type {Pointed<HTMLTableCellElement>} */
const pointed = {
  at: ({ target }) => /** @type {Element} */ (target).closest("td"),
  move: () => null,
  mark: (cell) => cell && cell.getBoundingClientRect(),
  tip: tipOf,
};

/** @param {HTMLTableCellElement} cell @returns {Tip | null} */
function tipOf(cell) {
  const row = /** @type {HTMLTableRowElement} */ (cell.parentElement).sectionRowIndex;
  const column = cell.cellIndex - 1;
  const entry = drawn?.cells[row]?.[column];
  if (!drawn || !entry) return null;
  const { names, down, across } = drawn;
  const decimals = decimalsFor([entry]);
  /** @param {number | null} share */
  const percent = (share) => figure(percentText(share, decimals), share);
  const { share, low, high, count, forged } = entry;
  return {
    title: `${names[0]} ${down[row]}, ${names[1]} ${across[column]}`,
    more: `some ${countText(count)} respondents`,
    rows: [{ name: "share", value: percent(share), bounds: [percent(low), " to ", percent(high)] }],
    notes: forged === null ? [] : [`beyond its bounds with ${forgedText(forged)}`],
  };
}
