// The picture of a map: every place in the colour of its area, with lines, axes, and shares where
// there is room. It shows a part of the grid, `view`, of whole places.

import { axisTitle, numberOf } from "../axis.js";
import { hatching } from "../charts/pen.js";
import { scaleOfColours } from "../colours.js";
import { edgeText } from "../format.js";
import { colour, isDark } from "../theme.js";

/** @typedef {{row: number, column: number, rows: number, columns: number}} View */
/**
 * @typedef {object} Grid Where they are.
 * @property {Int32Array} owner The innermost area of each place.
 * @property {Int32Array} block The block of each place.
 * @property {[number, number]} shape
 * @property {Domain} domain
 * @property {View} view
 * @property {(axis: number, place: number) => Label} label
 */
/** @typedef {Painted & Grid} Picture */

export const MARGIN = { left: 46, right: 10, top: 8, bottom: 40 };
const LEAST_WIDTH = 58; // Of a block, to write its share in it.
const LEAST_HEIGHT = 24;
const TEXT_HEIGHT = 12;

/** @param {AreaEntry} area Returns its part outside of the areas in it, or all of it. */
export const restOf = (area) => area.rest ?? area;

/** @param {AreaEntry} area */
export function perPlace(area) {
  const { share, values } = restOf(area);
  return share === null || values === 0 ? null : share / values;
}

/** @param {AreaEntry} area Returns whether its bounds include 0. */
export function mayBeNone(area) {
  const { low, high } = restOf(area);
  return low !== null && high !== null && low <= 0 && high > 0;
}

/** @param {AreaEntry[]} areas Returns the ends of the scale of their shares per place. */
export const rangeOf = (areas) => rangeOfShares(areas.map(perPlace));

/**
 * The ends of a logarithmic scale: powers of ten around the shares, at most four.
 *
 * @param {(number | null)[]} shares
 * @returns {[number, number]}
 */
export function rangeOfShares(shares) {
  const told = shares.filter((one) => one !== null && one > 0);
  if (told.length === 0) return [0.0001, 0.01];
  const high = 10 ** Math.ceil(Math.log10(Math.max(.../** @type {number[]} */ (told))));
  const least = 10 ** Math.floor(Math.log10(Math.min(.../** @type {number[]} */ (told))));
  return [Math.max(least, high / 10_000), high];
}

/** @param {[number, number]} range @returns {(share: number | null) => string} */
export function painter([low, high]) {
  const table = scaleOfColours(isDark());
  const last = table.length / 4 - 1;
  return (share) => {
    if (share === null) return colour("unsure");
    const part = share > 0 ? Math.log(share / low) / Math.log(high / low) : 0;
    const at = 4 * Math.round(last * Math.min(1, Math.max(0, part)));
    return `rgb(${table[at]}, ${table[at + 1]}, ${table[at + 2]})`;
  };
}

/** @param {string} rgb From `painter`; returns the one of black and white with more contrast. */
export function inkOn(rgb) {
  const [red, green, blue] = (rgb.match(/\d+/g) ?? []).map((part) => {
    const light = Number(part) / 255;
    return light <= 0.04045 ? light / 12.92 : ((light + 0.055) / 1.055) ** 2.4;
  });
  // WCAG 2: at this luminance both have a contrast of 4.58 to 1.
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
}

/** @param {HTMLCanvasElement} canvas @param {Picture} picture */
export function drawPicture(canvas, picture) {
  const box = canvas.getBoundingClientRect();
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(box.width * scale);
  canvas.height = Math.round(box.height * scale);
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.scale(scale, scale);
  pen.fillStyle = colour("card");
  pen.fillRect(0, 0, box.width, box.height);
  const { view } = picture;
  const width = (box.width - MARGIN.left - MARGIN.right) / view.columns;
  const height = (box.height - MARGIN.top - MARGIN.bottom) / view.rows;
  /** @param {number} row */
  const y = (row) => MARGIN.top + (row - view.row) * height;
  /** @param {number} column */
  const x = (column) => MARGIN.left + (column - view.column) * width;
  fillAreas(pen, picture, x, y);
  drawLines(pen, picture, x, y);
  writeShares(pen, picture, x, y);
  drawAxes(pen, picture, x, y);
}

/** @typedef {(place: number) => number} Place */
/** @typedef {(pen: CanvasRenderingContext2D, picture: Picture, x: Place, y: Place) => void} Draw */

/** @type {Draw} */
function fillAreas(pen, { areas, owner, shape, view, paint, hatched }, x, y) {
  const colours = areas.map(paint());
  const unsure = areas.map(hatched);
  const hatch = hatching(pen, colour("faint"), 8);
  for (let row = view.row; row < view.row + view.rows; row += 1) {
    const first = row * shape[1];
    const end = view.column + view.columns;
    for (let from = view.column, to = from; from < end; from = to) {
      const area = owner[first + from];
      while (to < end && owner[first + to] === area) to += 1;
      if (area < 0) continue; // Outside of all shapes.
      // Whole pixels, or gaps between rows would show.
      const [left, top] = [Math.floor(x(from)), Math.floor(y(row))];
      const [right, bottom] = [Math.ceil(x(to)), Math.ceil(y(row + 1))];
      for (const style of unsure[area] ? [colours[area], hatch] : [colours[area]]) {
        pen.fillStyle = style;
        pen.fillRect(left, top, right - left, bottom - top);
      }
    }
  }
}

/** @type {Draw} */
function drawLines(pen, { owner, block, shape, view }, x, y) {
  /** @param {Int32Array} of @param {number} width @param {string} style */
  const outline = (of, width, style) => {
    pen.beginPath();
    for (let row = view.row; row < view.row + view.rows; row += 1) {
      for (let column = view.column; column < view.column + view.columns; column += 1) {
        const at = row * shape[1] + column;
        if (column > view.column && of[at] !== of[at - 1]) {
          pen.moveTo(x(column), y(row));
          pen.lineTo(x(column), y(row + 1));
        }
        if (row > view.row && of[at] !== of[at - shape[1]]) {
          pen.moveTo(x(column), y(row));
          pen.lineTo(x(column + 1), y(row));
        }
      }
    }
    pen.lineWidth = width;
    pen.strokeStyle = style;
    pen.stroke();
  };
  outline(owner, 0.7, colour("faint"));
  outline(block, 1.8, colour("card"));
}

/** @type {Draw} */
function writeShares(pen, { areas, owner, shape, view, paint, written }, x, y) {
  const colourOf = paint();
  pen.font = "600 12px system-ui, sans-serif";
  pen.textAlign = "left";
  pen.textBaseline = "top";
  areas.forEach((area, own) => {
    const text = written(area);
    if (area.inside !== null || !area.box || !text) return;
    const [[top, bottom], [left, right]] = area.box;
    const [low, high] = [
      Math.max(left, view.column),
      Math.min(right + 1, view.column + view.columns),
    ];
    const room = x(high) - x(low) >= LEAST_WIDTH && y(bottom + 1) - y(top) >= LEAST_HEIGHT;
    if (!room || top < view.row || bottom >= view.row + view.rows) return;
    const wide = pen.measureText(text).width;
    const corners = [y(top) + 5, y(bottom + 1) - 5 - TEXT_HEIGHT].flatMap((up) =>
      [x(low) + 5, x(high) - 5 - wide].map((from) => [from, up]),
    );
    /** @param {number[]} corner Returns whether no other area lies below the text. */
    const isClear = ([from, up]) => {
      const [columns, rows] = [
        [from, from + wide].map((at) => Math.floor(low + (at - x(low)) / (x(1) - x(0)))),
        [up, up + TEXT_HEIGHT].map((at) => Math.floor(top + (at - y(top)) / (y(1) - y(0)))),
      ];
      for (let row = rows[0]; row <= rows[1]; row += 1)
        for (let column = columns[0]; column <= columns[1]; column += 1)
          if (owner[row * shape[1] + column] !== own) return false;
      return true;
    };
    const [from, up] = corners.find(isClear) ?? corners[0];
    const ground = colourOf(area);
    pen.strokeStyle = ground;
    pen.lineWidth = 4;
    pen.fillStyle = inkOn(ground);
    // Outlined in the ground's colour: it may be hatched, and areas may lie in every corner.
    pen.strokeText(text, from, up);
    pen.fillText(text, from, up);
  });
}

/** @type {Draw} */
function drawAxes(pen, { view, label, domain }, x, y) {
  pen.fillStyle = pen.strokeStyle = colour("faint");
  pen.font = "12px system-ui, sans-serif";
  pen.lineWidth = 1;
  const bottom = y(view.row + view.rows);
  const titled = { ...domain, axes: domain.axes ?? ["first coordinate", "second coordinate"] };
  /** @param {number} axis @param {number} place @param {number} step To the next number. */
  const text = (axis, place, step) => {
    const [edge, next] = [place, place + step].map((at) => numberOf(label(axis, at), "low"));
    return edge === null || next === null ? "" : edgeText(edge, Math.abs(next - edge));
  };
  pen.beginPath();
  pen.textAlign = "center";
  pen.textBaseline = "top";
  const columns = ticks(view.column, view.columns, x(1) - x(0), 56);
  for (const place of columns.places) {
    const at = x(place);
    pen.moveTo(at, bottom);
    pen.lineTo(at, bottom + 4);
    pen.fillText(text(1, place, columns.step), at, bottom + 6);
  }
  const across = axisTitle(titled, 1);
  pen.fillText(across, x(view.column + view.columns / 2), bottom + 23);
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  const lines = ticks(view.row, view.rows, y(1) - y(0), 36);
  for (const place of lines.places) {
    pen.moveTo(MARGIN.left - 4, y(place));
    pen.lineTo(MARGIN.left, y(place));
    const low = Math.max(y(place), MARGIN.top + 5);
    pen.fillText(text(0, place, lines.step), MARGIN.left - 6, low);
  }
  pen.stroke();
  // A map that is lower than its title leaves the title the room of the other axis.
  const rows = axisTitle(titled, 0);
  const half = pen.measureText(rows).width / 2;
  pen.save();
  pen.translate(10, Math.max(y(view.row + view.rows / 2), half + 2));
  pen.rotate(-Math.PI / 2);
  pen.textAlign = "center";
  pen.fillText(rows, 0, 0);
  pen.restore();
}

/**
 * Places with a number: multiples of 1, 2 or 5 times a power of ten, some pixels apart.
 *
 * @param {number} first
 * @param {number} count
 * @param {number} each Pixels of a place.
 * @param {number} apart Pixels.
 */
function ticks(first, count, each, apart) {
  const wanted = Math.max(1, apart / each);
  const power = 10 ** Math.floor(Math.log10(wanted));
  const step = Math.ceil([1, 2, 5, 10].map((one) => one * power).find((one) => one >= wanted) ?? 1);
  const places = [];
  for (let at = Math.ceil(first / step) * step; at < first + count; at += step) places.push(at);
  return { places, step };
}
