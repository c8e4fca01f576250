// Tables: the words of every chart, readable on a phone too.

import { make } from "./dom.js";

/** @typedef {import("./dom.js").Child} Child */
/** @typedef {{title: string, kind?: "name" | "chart" | "more"}} Column */

/**
 * Fill a table. Roles are given, because a phone's layout takes a table's own away.
 *
 * @param {HTMLTableElement} table
 * @param {Column[]} columns
 * @param {Child[][]} rows One child a column.
 */
export function fillTable(table, columns, rows) {
  table.setAttribute("role", "table");
  const head = make("tr", { role: "row" });
  for (const { title, kind } of columns) {
    head.append(make("th", { scope: "col", role: "columnheader", className: kind ?? "" }, title));
  }
  const body = make("tbody", { role: "rowgroup" });
  for (const cells of rows) body.append(rowOf(columns, cells));
  table.replaceChildren(
    ...(table.caption ? [table.caption] : []),
    make("thead", { role: "rowgroup" }, head),
    body,
  );
}

/**
 * @param {Column[]} columns
 * @param {Child[]} cells
 */
function rowOf(columns, cells) {
  const row = make("tr", { role: "row" });
  columns.forEach(({ title, kind }, place) => {
    if (kind === "name") {
      row.append(make("th", { scope: "row", role: "rowheader", className: "name" }, cells[place]));
      return;
    }
    // The title stands beside the number where a phone shows no heads of columns.
    row.append(
      make("td", { role: "cell", className: kind ?? "", "data-title": title }, cells[place]),
    );
  });
  return row;
}
