// Each line has a colour and a shape of its points.

import { drawn } from "../spark.js";

/** @typedef {{colour: string, shape: string}} Look A custom property, and a path around 0. */

/** @type {Look[]} */
export const LOOKS = [
  { colour: "line-1", shape: "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z" },
  { colour: "line-2", shape: "M-3.7-3.7h7.4v7.4h-7.4z" },
  { colour: "line-3", shape: "M0-4.8L4.6 3.4h-9.2z" },
  { colour: "line-4", shape: "M0-5.2L5.2 0L0 5.2L-5.2 0z" },
];

/**
 * The point of a line as a picture, for words next to it.
 *
 * @param {Look} look
 */
export function glyph({ colour, shape }) {
  const path = drawn("path", { d: shape });
  return drawn("svg", { viewBox: "-6 -6 12 12", class: `glyph ${colour}` }, [path]);
}
