// Tables: the words of every chart, readable on a phone too.

import { make } from "./dom.js";

/** @typedef {import("./dom.js").Child} Child */
/** @typedef {{title: string, kind?: keyof typeof WIDTHS}} Column */

// Of tables with a chart, whose rows are laid out one by one; a row's "more" comes last.
const WIDTHS = {
  name: "minmax(7rem, 1.2fr)",
  chart: "minmax(3rem, 3fr)",
  change: "11rem",
  more: "",
};
const WIDTH = "5.2rem";

/**
 * Fill a table. What it shows already is left alone: a selection stays, and nothing is laid out
 * again but what has changed. Roles are given, because other layouts take a table's own away.
 *
 * @param {HTMLTableElement} table
 * @param {Column[]} columns
 * @param {Child[][]} rows One child a column.
 */
export function fillTable(table, columns, rows) {
  const titles = columns.map(({ title }) => title).join("\n");
  if (table.dataset.titles !== titles) begin(table, columns, titles);
  const [body] = table.tBodies;
  const shown = [...body.rows];
  rows.forEach((cells, at) => {
    const row = shown[at] ?? body.appendChild(rowOf(columns));
    cells.forEach((child, place) => fillCell(row.cells[place], child ?? ""));
  });
  for (const row of shown.slice(rows.length)) row.remove();
}

/**
 * @param {HTMLTableElement} table
 * @param {Column[]} columns
 * @param {string} titles
 */
function begin(table, columns, titles) {
  table.dataset.titles = titles;
  table.setAttribute("role", "table");
  if (columns.some(({ kind }) => kind === "chart")) {
    const widths = columns.map(({ kind }) => (kind ? WIDTHS[kind] : WIDTH));
    table.className = "charted";
    table.style.setProperty("--columns", widths.join(" "));
  }
  const head = make("tr", { role: "row" });
  for (const { title, kind } of columns) {
    head.append(make("th", { scope: "col", role: "columnheader", className: kind ?? "" }, title));
  }
  table.replaceChildren(
    ...(table.caption ? [table.caption] : []),
    make("thead", { role: "rowgroup" }, head),
    make("tbody", { role: "rowgroup" }),
  );
}

/** @param {Column[]} columns */
function rowOf(columns) {
  const row = make("tr", { role: "row" });
  for (const { title, kind } of columns) {
    row.append(
      kind === "name"
        ? make("th", { scope: "row", role: "rowheader", className: "name" })
        : // The title stands with the number where a phone shows no heads of columns.
          make("td", { role: "cell", className: kind ?? "", "data-title": title }),
    );
  }
  return row;
}

/**
 * @param {HTMLTableCellElement} cell
 * @param {string | Node} child
 */
function fillCell(cell, child) {
  const made = typeof child === "string" ? new Text(child) : child;
  if (!cell.firstChild?.isEqualNode(made)) cell.replaceChildren(made);
}
