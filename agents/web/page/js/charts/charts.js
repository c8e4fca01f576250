// Lines with bounds over one axis. uPlot draws the axes; this module draws what lies between them.

import { element, make } from "../dom.js";
import { tickText, zoneOf } from "../format.js";
import { drawMarks } from "./marks.js";
import { colour } from "../theme.js";
import { FONT, ticksOf, tickTimeText, widthOf } from "./ticks.js";

/** @typedef {{plot: any, chart: Chart, watch: ResizeObserver}} Kept */

const APART = 50; // Pixels from one number of an axis to the next, at least.
const MOST_ROOM = 0.3; // Of the width, for what stands at the ends of lines.

/** @type {Map<HTMLElement, Kept>} */
const charts = new Map();

/**
 * Draw, or draw again.
 *
 * @param {HTMLElement} host
 * @param {Chart} chart
 */
export function drawChart(host, chart) {
  const kept = charts.get(host);
  if (kept) {
    kept.chart = chart;
    kept.plot.setData(dataOf(chart));
    return;
  }
  const watch = new ResizeObserver(() => {
    const now = charts.get(host);
    if (now && host.clientWidth)
      now.plot.setSize({ width: host.clientWidth, height: now.chart.height });
  });
  watch.observe(host);
  const made = { plot: null, chart, watch };
  charts.set(host, made);
  made.plot = build(host, made);
}

/** @param {HTMLElement} host */
export function forgetChart(host) {
  const kept = charts.get(host);
  if (!kept) return;
  kept.watch.disconnect();
  kept.plot.destroy();
  charts.delete(host);
}

/** Draw all charts in the current colours. */
export function restyleCharts() {
  for (const [host, kept] of charts) {
    kept.plot.destroy();
    kept.plot = build(host, kept);
  }
}

/**
 * The value below the pointer.
 *
 * @param {HTMLElement} host
 * @param {number} clientX
 * @returns {number | null} null if nothing is drawn.
 */
export function valueAt(host, clientX) {
  const plot = charts.get(host)?.plot;
  return plot ? plot.posToVal(clientX - plot.over.getBoundingClientRect().left, "x") : null;
}

/**
 * Draw the cursor at a value, with a ring at the nearest point of each line; or take it away.
 *
 * @param {HTMLElement} host
 * @param {number | null} value
 * @returns {DOMRect | null} The box of the cursor.
 */
export function markChart(host, value) {
  const kept = charts.get(host);
  if (!kept) return null;
  const { plot, chart } = kept;
  const cursor =
    plot.over.querySelector(".cursor") ??
    plot.over.appendChild(make("div", { className: "cursor" }));
  cursor.hidden = value === null;
  if (value === null) return null;
  cursor.style.left = `${plot.valToPos(value, "x")}px`;
  const at = nearest(chart.x, value);
  const heights = chart.lines.flatMap(({ middle }) => middle[at] ?? []);
  cursor.replaceChildren(
    ...heights.map((height) => {
      const ring = make("i", {});
      ring.style.top = `${plot.valToPos(height, "y")}px`;
      return ring;
    }),
  );
  return cursor.getBoundingClientRect();
}

/** @param {number[]} all @param {number} value Returns the place of the nearest. */
export function nearest(all, value) {
  let found = 0;
  all.forEach((one, at) => {
    if (Math.abs(one - value) < Math.abs(all[found] - value)) found = at;
  });
  return found;
}

/** @param {Chart} chart uPlot scales by it; lines are drawn by `drawMarks`. */
function dataOf({ x, extent }) {
  return [x, x.map(() => extent[0])];
}

/**
 * From the least to the largest value or end of a whisker, or half a step beyond times.
 *
 * @param {Chart} chart
 * @returns {[number, number]}
 */
function spanOf({ x, step = 0, wide, across = [] }) {
  /** @param {number} side */
  const sides = (side) => x.map((value, at) => value + (side * step * (wide?.[at] ?? 1)) / 2);
  const ends = [...sides(-1), ...sides(1), ...across.flatMap(({ low, high }) => [low, high])];
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  return low < high ? [low, high] : [low - 0.5, high + 0.5];
}

/** @param {HTMLElement} host @param {Kept} kept */
function build(host, kept) {
  const { uPlot } = /** @type {any} */ (globalThis);
  const [ink, line] = ["faint", "line"].map(colour);
  const axis = { stroke: ink, font: FONT, labelFont: FONT, labelSize: 18 };
  const { height, step, xTitle } = kept.chart;
  return new uPlot(
    {
      width: host.clientWidth || 300,
      height,
      /** @param {number} seconds */
      tzDate: (seconds) => uPlot.tzDate(new Date(1000 * seconds), zoneOf(kept.chart.zone)),
      padding: [
        kept.chart.columns ? 32 : 26,
        /** @param {any} plot */
        (plot) => Math.min(kept.chart.room ?? endRoom(kept.chart), MOST_ROOM * plot.width),
        xTitle ? 0 : 8,
        0,
      ],
      cursor: { show: false },
      legend: { show: false },
      scales: {
        x: { time: step !== undefined, range: () => spanOf(kept.chart) },
        y: { range: () => kept.chart.extent },
      },
      axes: [
        {
          ...axis,
          show: xTitle !== "",
          label: xTitle,
          size: 34,
          grid: { show: step === undefined, stroke: line, width: 1 },
          ticks: { stroke: line, width: 1 },
          ...(step === undefined
            ? {
                /** @param {any} _ @param {number} at @param {number} low @param {number} high */
                space: (_, at, low, high) =>
                  Math.max(APART, widthOf([tickText(low, ""), tickText(high, "")]) + 14),
                /** @param {any} _ @param {number[]} ticks */
                values: (_, ticks) => ticks.map((tick) => tickText(tick, "")),
              }
            : {
                /** @param {any} _ @param {number} at @param {number} low @param {number} high @param {number} wide */
                space: (_, at, low, high, wide) =>
                  Math.max(
                    ((kept.chart.step ?? 0) * wide) / (high - low) - 1,
                    // If a minute is wider than two labels, labels have seconds, too.
                    (60 * wide) / (high - low) < 2 * APART ? APART : widthOf(["00:00:00"]) + 14,
                  ),
                /** @param {any} _ @param {number[]} ticks */
                values: (_, ticks) =>
                  ticks.map((tick, at) =>
                    tickTimeText(tick, ticks[at - 1], zoneOf(kept.chart.zone)),
                  ),
              }),
        },
        {
          ...axis,
          grid: { stroke: line, width: 1 },
          ticks: { show: false },
          size: () => kept.chart.gutter ?? gutterOf(kept.chart),
          splits: () => splitsOf(kept.chart),
          /** @param {any} _ @param {number[]} ticks */
          values: (_, ticks) => ticks.map((tick) => kept.chart.yText(tick)),
        },
      ],
      series: [{}, { stroke: "transparent", points: { show: false } }],
      hooks: { draw: [(/** @type {any} */ plot) => drawMarks(plot, kept.chart)] },
    },
    dataOf(kept.chart),
    host,
  );
}

/** @param {Chart} chart The width of the numbers left of it. */
export function gutterOf(chart) {
  return Math.max(44, widthOf(splitsOf(chart).map(chart.yText)) + 16);
}

/** @param {Chart} chart */
function splitsOf({ extent, height, bars }) {
  return bars ? [0, Math.max(...bars)] : ticksOf(extent, height);
}

/** @param {Chart} chart How far the last number of an axis reaches beyond the last value. */
function endRoom(chart) {
  return Math.max(22, widthOf([tickText(spanOf(chart)[1], "")]) / 2 + 4);
}

/** @type {Promise<unknown> | null} */
let loading = null;

/** Load uPlot, once: what all collections together show has no charts, and is there sooner. */
export function loadCharts() {
  loading ??= new Promise((resolve, reject) => {
    const { content } = /** @type {HTMLTemplateElement} */ (element("charts"));
    const script = document.importNode(content, true).firstElementChild;
    script?.addEventListener("load", resolve);
    script?.addEventListener("error", () => {
      loading = null;
      reject(new Error("uPlot was not loaded"));
    });
    if (script) document.head.append(script);
  });
  return loading;
}
