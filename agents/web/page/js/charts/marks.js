// What a chart shows between its axes: lines with bounds, bars, marked columns and labels.

import { colour } from "../theme.js";
import { apart, hatching, point, stroke } from "./pen.js";
import { fitted, FONT, widthOf } from "./ticks.js";

const LABEL = 30; // Pixels from one label at the end of a line to the next.
const DODGE = 5; // Pixels between open points of the same window.
const DASHED = [3, 3];
const DOT = "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z";
const CAP = 4.5; // Pixels above and below.
const LINE = 14; // Pixels from one label to the next.
const LEAST_WIDTH = 420; // Pixels of a chart with labels: on a phone they would cover the curve.

/** @typedef {{atX: (value: number) => number, atY: (value: number) => number, left: number, right: number, top: number, bottom: number, end: number}} Frame */

/**
 * Columns, bars, bounds, lines and points, over what uPlot has drawn.
 *
 * @param {any} plot
 * @param {Chart} chart
 */
export function drawMarks(plot, chart) {
  /** @type {CanvasRenderingContext2D} */
  const pen = plot.ctx;
  const ratio = devicePixelRatio;
  const [left, top, width, height] = ["left", "top", "width", "height"].map(
    (side) => plot.bbox[side] / ratio,
  );
  /** @type {Frame} */
  const frame = {
    atX: (value) => left + plot.valToPos(value, "x"),
    atY: (value) => top + plot.valToPos(value, "y"),
    ...{ left, top, right: left + width, bottom: top + height, end: plot.width },
  };
  pen.save();
  pen.scale(ratio, ratio);
  pen.font = FONT;
  pen.textAlign = "left";
  pen.textBaseline = "alphabetic";
  drawColumns(pen, chart, frame);
  drawBars(pen, chart, frame);
  const { lines, across = [] } = chart;
  for (const [place, line] of lines.entries()) {
    drawLine(pen, line, chart, DODGE * (place - (lines.length - 1) / 2), frame);
  }
  drawWhiskers(pen, across, frame);
  drawLabels(pen, chart, frame);
  drawNotes(pen, chart.notes ?? [], frame);
  pen.fillStyle = colour("faint");
  pen.fillText(fitted(chart.yTitle, frame.right - 4), 4, top - (chart.columns ? 20 : 12));
  pen.restore();
}

/** @param {CanvasRenderingContext2D} pen @param {number[]} times @param {Frame} frame */
function drawNotes(pen, times, { atX, left, right, top, bottom }) {
  pen.save();
  pen.strokeStyle = pen.fillStyle = colour("ink");
  pen.setLineDash(DASHED);
  pen.textAlign = "center";
  for (const at of times.map(atX).filter((x) => x >= left && x <= right)) {
    pen.strokeRect(at, top, 0, bottom - top);
    pen.fillText("◆", at, top);
  }
  pen.restore();
}

/** @param {CanvasRenderingContext2D} pen @param {Chart} chart @param {Frame} frame */
function drawColumns(pen, { x, step = 1, columns = [] }, { atX, left, right, top, bottom }) {
  const each = atX(x[0] + step) - atX(x[0]);
  /** @type {Record<string, [string | CanvasPattern, string]>} Ground and ink. */
  const inks = {
    open: [colour("open-ground"), colour("open")],
    withheld: [hatch(pen), colour("faint")],
  };
  let written = left;
  for (const { x: middle, wide: steps, kind, text } of columns) {
    const [ground, ink] = inks[kind];
    const wide = (steps - 0.1) * each;
    pen.fillStyle = ground;
    pen.fillRect(atX(middle) - wide / 2, top, wide, bottom - top);
    const width = widthOf([text]);
    const start = Math.min(Math.max(atX(middle) - width / 2, left), right - width);
    if (start < written) continue;
    written = start + width + 8;
    pen.fillStyle = ink;
    pen.fillText(text, start, top - 5);
  }
}

/** @param {CanvasRenderingContext2D} pen @param {Chart} chart @param {Frame} frame */
function drawBars(pen, { x, step = 1, wide: steps, bars = [], final = [], hatched = [] }, frame) {
  const { atX, atY, bottom } = frame;
  const each = atX(x[0] + step) - atX(x[0]);
  const [solid, lines] = [colour("quiet"), hatch(pen)];
  pen.strokeStyle = colour("mark");
  bars.forEach((value, at) => {
    const wide = ((steps?.[at] ?? 1) - 0.3) * each;
    const [from, high] = [atX(x[at]) - wide / 2, atY(value)];
    const to = from + wide;
    pen.fillStyle = hatched[at] ? lines : solid;
    if (final[at]) pen.fillRect(from, high, wide, bottom - high);
    else stroke(pen, [from, bottom, from, high, to, high, to, bottom], DASHED);
  });
}

/** @param {CanvasRenderingContext2D} pen */
const hatch = (pen) => hatching(pen, colour("line"), 6);

/**
 * A line with its band. It is dotted across windows without a number, and dashed to an open one.
 *
 * @param {CanvasRenderingContext2D} pen
 * @param {Line} line
 * @param {Chart} chart
 * @param {number} aside Pixels that open points are moved, so that whiskers do not overlap.
 * @param {Frame} frame
 */
function drawLine(
  pen,
  { colour: name, shape, middle, low, high, dashed },
  chart,
  aside,
  { atX, atY },
) {
  const { x, step, wide = [], final = [] } = chart;
  if (dashed) {
    pen.strokeStyle = colour(name);
    pen.lineWidth = 1.5;
    const known = middle.flatMap((value, at) => (value === null ? [] : [atX(x[at]), atY(value)]));
    stroke(pen, known, [5, 4]);
    return;
  }
  /** @typedef {{x: number, half: number, low: number, middle: number, high: number, at: number, open: boolean}} Spot */
  const spots = x.flatMap((value, at) => {
    const [l, m, h] = [low[at], middle[at], high[at]];
    if (l === null || m === null || h === null) return [];
    const open = final[at] === false;
    const x = atX(value) + (open ? aside : 0);
    // From the first to the last window of a span.
    const half = (atX(value + (step ?? 0) * ((wide[at] ?? 1) - 1)) - atX(value)) / 2;
    return [{ x, half, low: atY(l), middle: atY(m), high: atY(h), at, open }];
  });
  /** @param {number} at Half of the steps of a span, and of those between windows. */
  const reach = (at) => ((step ?? 0) * (wide[at] ?? 1)) / 2;
  /** @type {Spot[][]} Runs of final points, each next to the other. */
  const runs = [];
  spots.forEach((spot, place) => {
    const before = spots[place - 1];
    const near =
      before &&
      before.at === spot.at - 1 &&
      (step === undefined ||
        x[spot.at] - x[before.at] < reach(spot.at) + reach(before.at) + step / 2);
    if (near && !spot.open && !before.open) runs[runs.length - 1].push(spot);
    else runs.push([spot]);
  });
  /** @param {Spot} spot */
  const middleOf = ({ x, half, middle }) => [x - half, middle, x + half, middle];
  const ink = colour(name);
  pen.strokeStyle = pen.fillStyle = ink;
  pen.lineJoin = "round";
  runs.forEach((run, place) => {
    pen.globalAlpha = 0.18;
    pen.beginPath();
    for (const { x, half, high } of run) for (const way of [-half, half]) pen.lineTo(x + way, high);
    for (const { x, half, low } of [...run].reverse())
      for (const way of [half, -half]) pen.lineTo(x + way, low);
    pen.fill();
    pen.globalAlpha = 1;
    pen.lineWidth = 2;
    stroke(pen, run.flatMap(middleOf));
    pen.lineWidth = 1.5;
    const [first] = run;
    const before = runs[place - 1]?.at(-1);
    if (before) {
      const between = [...middleOf(before).slice(2), ...middleOf(first).slice(0, 2)];
      stroke(pen, between, first.open ? [5, 4] : [1.5, 4]);
    }
    if (run.length === 1 && shape && !first.half)
      stroke(pen, [first.x, first.low, first.x, first.high], first.open ? DASHED : []);
  });
  if (!shape) return;
  for (const { x, middle, open } of spots)
    point(pen, shape, x, middle, open ? colour("card") : ink);
}

/**
 * The names of lines at their ends, kept apart.
 *
 * @param {CanvasRenderingContext2D} pen
 * @param {Chart} chart
 * @param {Frame} frame
 */
function drawLabels(pen, { lines }, { atY, right, top, bottom, end }) {
  const [left, room] = [right + 6, end - right - 6];
  const named = lines.flatMap((line) => {
    const last = line.middle.findLast((one) => one !== null);
    return line.label && typeof last === "number"
      ? [{ ...line, label: line.label, y: atY(last) }]
      : [];
  });
  const heights = apart(
    named.map(({ y }) => y),
    LABEL,
    top + 8,
    bottom - 12,
  );
  named.forEach(({ label: [name, small], colour: ink }, at) => {
    pen.fillStyle = colour(ink);
    pen.font = `600 ${FONT}`;
    pen.fillText(fitted(name, room, pen.font), left, heights[at]);
    pen.font = FONT;
    pen.fillStyle = colour("faint");
    pen.fillText(fitted(small, room), left, heights[at] + 14);
  });
}

/** @param {CanvasRenderingContext2D} pen @param {Whisker[]} across @param {Frame} frame */
function drawWhiskers(pen, across, frame) {
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
  labelWhiskers(pen, across, frame);
}

/**
 * Right of the whiskers and below them, where a rising curve is not; or left of them and above.
 *
 * @param {CanvasRenderingContext2D} pen
 * @param {Whisker[]} across
 * @param {Frame} frame
 */
function labelWhiskers(pen, across, { atX, atY, left, right, top, bottom }) {
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
