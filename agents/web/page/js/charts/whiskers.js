// Horizontal whiskers: each with its dot, a dotted line to the axis, and a label where there is room.

import { colour } from "../theme.js";
import { apart, point, stroke } from "./pen.js";
import { FONT, widthOf } from "./ticks.js";

/** @typedef {import("./marks.js").Frame} Frame */

const DOT = "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z";
const CAP = 4.5; // Pixels above and below.
const LINE = 14; // Pixels from one label to the next.
const LEAST_WIDTH = 420; // Pixels of a chart with labels: on a phone they would cover the curve.

/** @param {CanvasRenderingContext2D} pen @param {Whisker[]} across @param {Frame} frame */
export function drawWhiskers(pen, across, frame) {
  const { atX, atY, left } = frame;
  pen.strokeStyle = colour("accent");
  for (const { y, low, middle, high, open } of across) {
    const at = atY(y);
    const ends = [atX(low), atX(high)];
    /** @param {number} from @param {number} to @param {number[]} dash */
    const level = (from, to, dash) => stroke(pen, [from, at, to, at], dash);
    pen.globalAlpha = 0.6;
    pen.lineWidth = 1;
    level(left, ends[0], [1.5, 4]);
    pen.globalAlpha = 1;
    pen.lineWidth = 2.5;
    level(ends[0], ends[1], open ? [4, 3] : []);
    pen.lineWidth = 2;
    for (const end of ends) stroke(pen, [end, at - CAP, end, at + CAP]);
    point(pen, DOT, atX(middle), at, colour(open ? "card" : "accent"));
  }
  drawLabels(pen, across, frame);
}

/**
 * Right of the whiskers and below them, where a rising curve is not; or left of them and above.
 *
 * @param {CanvasRenderingContext2D} pen
 * @param {Whisker[]} across
 * @param {Frame} frame
 */
function drawLabels(pen, across, { atX, atY, left, right, top, bottom }) {
  if (right - left < LEAST_WIDTH) return;
  const font = `600 ${FONT}`;
  const named = across.flatMap(({ y, low, high, label }) => {
    if (!label) return [];
    const width = widthOf([label], font);
    const [before, after] = [atX(low) - 8 - width, atX(high) + 8];
    if (after + width <= right) return [{ label, x: after, y: atY(y) + LINE, after: true }];
    return before >= left ? [{ label, x: before, y: atY(y) - 6, after: false }] : [];
  });
  pen.font = font;
  pen.fillStyle = colour("ink");
  pen.strokeStyle = colour("card");
  pen.lineWidth = 3;
  pen.lineJoin = "round";
  for (const side of [true, false]) {
    const some = named.filter(({ after }) => after === side);
    if (LINE * (some.length - 1) > bottom - top - 16) continue;
    const heights = apart(
      some.map(({ y }) => y),
      LINE,
      top + 12,
      bottom - 4,
    );
    some.forEach(({ label, x }, at) => {
      pen.strokeText(label, x, heights[at]);
      pen.fillText(label, x, heights[at]);
    });
  }
  pen.font = FONT;
}
