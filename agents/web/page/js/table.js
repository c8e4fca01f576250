// Tables with the numbers of every chart, readable on a phone, too.

import { element, make, say } from "./dom.js";
import { along, pointAt } from "./charts/tooltip.js";

/** @typedef {{text: string, exact: number}} Figure */
/** @typedef {{className: string, style: string}} Drawn A picture drawn by its style. */
/** @typedef {Child | Figure | Drawn} Content */
/** @typedef {{title: string, kind?: keyof typeof WIDTHS, ticks?: Tick[], sort?: string}} Column With `sort`, a button. */

// Columns of tables with a chart, whose rows are laid out one by one; "more" columns come last.
const WIDTHS = {
  name: "minmax(7rem, 1.2fr)",
  chart: "minmax(3rem, 3fr)",
  difference: "minmax(3rem, 1.6fr)",
  change: "11rem",
  words: "minmax(0, 3fr)",
  state: "7.5rem",
  more: "",
};
const WIDTH = "5.2rem";
const LONG = 100; // Rows: browsers leave out of captures what is not in sight.

/**
 * A readable number, with the exact one as in `figure`.
 *
 * @param {string} text
 * @param {number | null | undefined} exact
 * @returns {Content}
 */
export function number(text, exact) {
  return exact === null || exact === undefined ? text : { text, exact };
}

/**
 * Fill a table, changing only what differs: a selection stays, and only changes are laid out again.
 * Roles are explicit, because CSS layouts remove those of table elements.
 *
 * @param {string} id
 * @param {Column[]} columns
 * @param {Content[][]} rows One child per column.
 */
export function fillTable(id, columns, rows) {
  const table = /** @type {HTMLTableElement} */ (element(id));
  const titles = columns.map(({ title }) => title).join("\n");
  if (table.dataset.titles !== titles) begin(table, columns, titles);
  columns.forEach(({ ticks }, at) => ticks && drawTicks(table, at, ticks));
  const [body] = table.tBodies;
  const shown = [...body.rows];
  rows.forEach((cells, at) => {
    const row = shown[at] ?? body.appendChild(rowOf(columns));
    cells.forEach((child, place) => fillCell(row.cells[place], child));
  });
  for (const row of shown.slice(rows.length)) row.remove();
  table.toggleAttribute("data-long", rows.length > LONG);
  if (table.className === "charted" && body.querySelector(".bar")) pointAt(table, rowsOf(table));
}

/**
 * Rows with bars can be pointed at: the tooltip says all that a narrow screen leaves out.
 *
 * @param {HTMLTableElement} table
 * @returns {Pointed<string>}
 */
function rowsOf(table) {
  const [body] = table.tBodies;
  /** @param {string | null} name */
  const named = (name) => [...body.rows].find((row) => row.cells[0].textContent === name);
  return {
    at: ({ target }) => {
      const row = /** @type {Element} */ (target)
        .closest(".chart, .difference")
        ?.closest("tbody tr");
      return row?.firstElementChild?.textContent ?? null;
    },
    move: (name, key) => {
      const names = [...body.rows].map((row) => row.cells[0].textContent);
      const next = along(names, name, key);
      named(next)?.scrollIntoView({ block: "nearest" });
      return next;
    },
    mark: (name) => {
      for (const row of body.querySelectorAll(".pointed")) row.classList.remove("pointed");
      const row = named(name);
      row?.classList.add("pointed");
      return row?.querySelector(".chart")?.getBoundingClientRect() ?? null;
    },
    tip: (name) => {
      const row = named(name);
      return row ? { title: name, rows: toldBy(row) } : null;
    },
  };
}

/**
 * The numbers of a row, and next to each its bounds.
 *
 * @param {HTMLTableRowElement} row
 */
function toldBy(row) {
  /** @type {TipRow[]} */
  const told = [];
  for (const { dataset, firstElementChild, textContent } of row.cells) {
    const title = dataset.title ?? "";
    if (!title || firstElementChild?.ariaHidden || !textContent) continue;
    const before = told[told.length - 1];
    const small = firstElementChild?.querySelector("small")?.textContent ?? "";
    if (/\blow$/.test(title)) before.bounds = [textContent];
    else if (/\bhigh$/.test(title)) before.bounds?.push(` to ${textContent}`);
    else told.push({ name: title, value: textContent.replace(small, ""), bounds: [small] });
  }
  return told;
}

/** @param {HTMLTableElement} table @param {Column[]} columns @param {string} titles */
function begin(table, columns, titles) {
  table.dataset.titles = titles;
  table.setAttribute("role", "table");
  if (columns.some(({ kind }) => kind === "chart")) {
    const widths = columns.map(({ kind }) => (kind ? WIDTHS[kind] : WIDTH));
    table.className = "charted";
    table.style.setProperty("--columns", widths.join(" "));
  }
  const head = make("tr", { role: "row" });
  for (const { title, kind, sort } of columns) {
    const said = sort ? make("button", { type: "button", "data-sort": sort }, title) : title;
    head.append(make("th", { scope: "col", role: "columnheader", className: kind ?? "" }, said));
  }
  table.replaceChildren(
    ...(table.caption ? [table.caption] : []),
    make("thead", { role: "rowgroup" }, head),
    make("tbody", { role: "rowgroup" }),
  );
}

/**
 * The scale of the pictures in a column, below its title.
 *
 * @param {HTMLTableElement} table
 * @param {number} at Of the column.
 * @param {Tick[]} ticks
 */
function drawTicks(table, at, ticks) {
  const head = /** @type {HTMLTableRowElement} */ (table.tHead?.rows[0]).cells[at];
  const scale = make("div", { className: "scale", ariaHidden: "true" });
  for (const tick of ticks) {
    const text = scale.appendChild(make("span", {}, tick.text));
    text.style.left = `${tick.at}%`;
  }
  const known = head.querySelector(".scale");
  if (!known) head.append(scale);
  else if (!known.isEqualNode(scale)) known.replaceWith(scale);
}

/** @param {Column[]} columns */
function rowOf(columns) {
  const row = make("tr", { role: "row" });
  for (const { title, kind } of columns) {
    row.append(
      kind === "name"
        ? make("th", { scope: "row", role: "rowheader", className: "name" })
        : // On a phone, which shows no column headers, the title stands next to the number.
          make("td", { role: "cell", className: kind ?? "", "data-title": title }),
    );
  }
  return row;
}

/**
 * Change numbers and pictures in place: there may be a thousand, many times a minute.
 *
 * @param {HTMLTableCellElement} cell
 * @param {Content} child
 */
function fillCell(cell, child) {
  if (child === null || typeof child === "string" || child instanceof Node) {
    const made = child instanceof Node ? child : new Text(child ?? "");
    if (!cell.firstChild?.isEqualNode(made)) cell.replaceChildren(made);
  } else if ("style" in child) {
    const picture = partOf(cell, "div");
    if (picture.className !== child.className) picture.className = child.className;
    if (!picture.ariaHidden) picture.ariaHidden = "true";
    picture.style.cssText = child.style;
  } else {
    const exact = String(child.exact);
    const part = partOf(cell, "data");
    if (part.value !== exact) part.value = exact;
    if (part.title && part.title !== exact) part.title = exact;
    say(part, child.text);
  }
}

/** @template {"data" | "div"} Tag @param {HTMLTableCellElement} cell @param {Tag} tag */
function partOf(cell, tag) {
  const shown = cell.firstElementChild;
  if (shown?.localName === tag) return /** @type {HTMLElementTagNameMap[Tag]} */ (shown);
  const made = document.createElement(tag);
  cell.replaceChildren(made);
  return made;
}
