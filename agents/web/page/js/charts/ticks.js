// The numbers of axes: which, how wide, and how they are written.

import { hourText, shortDayText } from "../format.js";

export const FONT = "12px system-ui, sans-serif";
const EACH = 42; // Pixels from one horizontal line to the next, at least.
const ruler = document.createElement("canvas");

/**
 * Width of the widest text, in pixels.
 *
 * @param {string[]} texts
 * @param {string} [font]
 */
export function widthOf(texts, font = FONT) {
  const pen = /** @type {CanvasRenderingContext2D} */ (ruler.getContext("2d"));
  pen.font = font;
  return Math.max(0, ...texts.map((text) => pen.measureText(text).width));
}

/**
 * A text, cut where there is no room for it.
 *
 * @param {string} text
 * @param {number} room Pixels.
 * @param {string} [font]
 */
export function fitted(text, room, font = FONT) {
  if (widthOf([text], font) <= room) return text;
  let length = text.length;
  while (length > 1 && widthOf([`${text.slice(0, length)}…`], font) > room) length -= 1;
  return `${text.slice(0, length)}…`;
}

/**
 * Round numbers between two ends.
 *
 * @param {[number, number]} ends
 * @param {number} height Pixels.
 */
export function ticksOf([low, high], height) {
  const least = (high - low) / Math.max(1, Math.floor((height - 50) / EACH));
  const power = 10 ** Math.floor(Math.log10(least));
  const step = power * ([1, 2, 5, 10].find((one) => one * power >= least * (1 - 1e-9)) ?? 10);
  const [first, last] = [Math.ceil(low / step - 1e-9), Math.floor(high / step + 1e-9)];
  return Array.from({ length: last - first + 1 }, (_, at) =>
    Number(((first + at) * step).toPrecision(12)),
  );
}

/**
 * A moment: the time of day, or the date where a new day begins.
 *
 * @param {number} seconds
 * @param {number | undefined} before The tick before it.
 * @param {string} zone
 */
export function tickTimeText(seconds, before, zone) {
  const [day, last] = [seconds, before ?? seconds].map((one) => shortDayText(1000 * one, zone));
  const begins = day !== shortDayText(1000 * seconds - 1, zone);
  return begins || day !== last ? day : hourText(1000 * seconds, zone);
}
