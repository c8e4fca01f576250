// A report card: one picture, SVG, that says by itself what it shows, of when and how sure it is.

import { fitted, widthOf } from "../charts/ticks.js";

/**
 * @typedef {object} Card
 * @property {string} title
 * @property {string[]} paragraphs Of the period and reports, what is said, bounds and method.
 * @property {string} link
 * @property {string[][]} rows Of a table, its head first; where there are no pictures.
 * @property {HTMLCanvasElement[]} pictures
 */

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 720;
const MARGIN = 28;
const ROOM = WIDTH - 2 * MARGIN;
const INK = "#17202b";
const FAINT = "#566270";
// A document of its own loads nothing: of a picture in this one the policy would forbid the data.
const elsewhere = document.implementation.createDocument(SVG, "svg");
const FAMILY = "system-ui, sans-serif";

/**
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 * @param {string} [text]
 */
function part(tag, attributes, text = "") {
  const made = elsewhere.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.textContent = text;
  return made;
}

/** @param {string} text @param {string} font @returns {string[]} */
function wrapped(text, font) {
  /** @type {string[]} */
  const lines = [];
  for (const word of text.split(/\s+/)) {
    const longer = `${lines.at(-1) ?? ""} ${word}`.trim();
    if (lines.length && widthOf([longer], font) <= ROOM) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

/** @param {Card} card @returns {string} */
export function cardOf({ title, paragraphs, link, rows, pictures }) {
  const card = part("svg", { width: WIDTH, "font-family": FAMILY, role: "img" });
  card.append(
    part("title", {}, title),
    part("rect", { width: "100%", height: "100%", fill: "#fff" }),
  );
  let y = MARGIN;
  /** @param {string} text @param {number} size @param {string} fill @param {number} weight */
  const write = (text, size, fill, weight = 400) => {
    for (const line of wrapped(text, `${weight} ${size}px ${FAMILY}`)) {
      y += 1.35 * size;
      const attributes = { x: MARGIN, y, fill, "font-size": size, "font-weight": weight };
      card.append(part("text", attributes, line));
    }
    y += 8;
  };
  const [period, sentence, ...small] = paragraphs;
  write(title, 20, INK, 680);
  write(period, 13, FAINT);
  write(sentence, 17, INK, 600);
  for (const canvas of pictures) {
    const height = (ROOM * canvas.height) / canvas.width;
    const href = canvas.toDataURL("image/png");
    card.append(part("image", { x: MARGIN, y, width: ROOM, height, href }));
    y += height + 8;
  }
  const [head = []] = rows;
  rows.forEach((row, number) => {
    y += 20;
    row.forEach((text, at) => {
      const each = ROOM / head.length;
      const place = { x: MARGIN + (at ? (at + 1) * each : 0), "text-anchor": at ? "end" : "start" };
      const look = { fill: number ? INK : FAINT, "font-size": 13 };
      card.append(part("text", { ...place, y, ...look }, fitted(text, each - 8, `13px ${FAMILY}`)));
    });
  });
  if (rows.length) y += 12;
  for (const text of small) write(text, 12, FAINT);
  write(link, 12, FAINT);
  card.setAttribute("viewBox", `0 0 ${WIDTH} ${y + MARGIN}`);
  card.setAttribute("height", String(y + MARGIN));
  return new XMLSerializer().serializeToString(card);
}
