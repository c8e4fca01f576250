// Lines with bounds, drawn with uPlot: the library draws axes, this module draws bounds.

import { make } from "./dom.js";
import { tickText } from "./format.js";
import { colour } from "./theme.js";

/**
 * @typedef {object} Band
 * @property {number[]} x
 * @property {(number | null)[]} middle
 * @property {(number | null)[]} low
 * @property {(number | null)[]} high
 * @property {boolean[]} final Other points are hollow, with a dashed whisker.
 * @property {boolean} time Whether x is a time, in seconds.
 * @property {boolean} dots Whether to draw points and whiskers.
 * @property {(value: number) => string} yText
 * @property {string} label For screen readers.
 * @property {number} height Pixels.
 * @property {string} xTitle
 * @property {string} yTitle
 * @property {[number, number] | null} [extent] Of y, if other charts share it; else its own.
 * @property {string[]} [said] The text of each point, shown at the cursor in all charts.
 * @property {Whisker[]} [across] Horizontal whiskers.
 */
/** @typedef {{y: number, low: number, middle: number, high: number}} Whisker */
/** @typedef {{chart: any, band: Band, watch: ResizeObserver}} Kept */

const FONT = "12px system-ui, sans-serif";
const APART = 50; // Pixels from one number of an axis to the next, at least.
const ruler = document.createElement("canvas");

/** @type {Map<HTMLElement, Kept>} */
const charts = new Map();

/**
 * Draw, or draw again.
 *
 * @param {HTMLElement} host
 * @param {Band} band
 */
export function drawBand(host, band) {
  const kept = charts.get(host);
  host.setAttribute("role", "img");
  host.setAttribute("aria-label", band.label);
  if (kept) {
    kept.band = band;
    kept.chart.setData(dataOf(band));
    return;
  }
  const watch = new ResizeObserver(() => {
    const now = charts.get(host);
    if (now && host.clientWidth)
      now.chart.setSize({ width: host.clientWidth, height: band.height });
  });
  watch.observe(host);
  const made = { chart: null, band, watch };
  charts.set(host, made);
  made.chart = build(host, made);
}

/** @param {HTMLElement} host */
export function forgetChart(host) {
  const kept = charts.get(host);
  if (!kept) return;
  kept.watch.disconnect();
  kept.chart.destroy();
  charts.delete(host);
}

/** Draw all charts in the current colours. */
export function restyleCharts() {
  for (const [host, kept] of charts) {
    kept.chart.destroy();
    kept.chart = build(host, kept);
  }
}

/** @param {Band} band */
function dataOf({ x, low, middle, high }) {
  return [x, low, middle, high];
}

/**
 * @param {HTMLElement} host
 * @param {Kept} kept
 */
function build(host, kept) {
  const { uPlot } = /** @type {any} */ (globalThis);
  const [ink, line, mark, span] = ["faint", "line", "mark", "band"].map(colour);
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
  const none = { stroke: "transparent", points: { show: false } };
  return new uPlot(
    {
      width: host.clientWidth || 300,
      height: kept.band.height,
      /** @param {number} seconds */
      tzDate: (seconds) => uPlot.tzDate(new Date(1000 * seconds), "UTC"),
      padding: [10, () => roomAtTheEnd(kept.band), 0, 0],
      cursor: kept.band.said
        ? {
            y: false,
            points: { show: false },
            drag: { setScale: false, x: false, y: false },
            sync: { key: "windows", scales: ["x", null] },
          }
        : { show: false },
      legend: { show: false },
      scales: {
        x: {
          time: kept.band.time,
          ...(kept.band.time ? {} : { range: () => extentOf(kept.band) }),
        },
        y: kept.band.extent === undefined ? {} : { range: () => kept.band.extent },
      },
      axes: [
        {
          ...axis,
          ...titled(kept.band.xTitle),
          size: 34,
          ...(kept.band.time
            ? {
                /** @param {any} _ @param {number} at @param {number} low @param {number} high @param {number} wide */
                space: (_, at, low, high, wide) =>
                  // If a minute is wider than two labels, labels have seconds, too.
                  (60 * wide) / (high - low) < 2 * APART ? APART : widthOf(["00:00:00"]) + 14,
                /** @param {any} _ @param {number[]} ticks */
                values: (_, ticks) => ticks.map((tick, at) => timeText(tick, ticks[at - 1])),
              }
            : {
                /** @param {any} _ @param {number} at @param {number} low @param {number} high */
                space: (_, at, low, high) =>
                  Math.max(APART, widthOf([tickText(low, ""), tickText(high, "")]) + 14),
                /** @param {any} _ @param {number[]} ticks */
                values: (_, ticks) => ticks.map((tick) => tickText(tick, "")),
              }),
        },
        {
          ...axis,
          ...titled(kept.band.yTitle),
          /** @param {any} _ @param {string[] | null} texts */
          size: (_, texts) => Math.max(58, widthOf(texts ?? []) + 20),
          /** @param {any} _ @param {number[]} ticks */
          values: (_, ticks) => ticks.map((tick) => kept.band.yText(tick)),
        },
      ],
      series: [{}, none, { stroke: mark, width: 2, points: { show: false } }, none],
      bands: [{ series: [3, 1], fill: span }],
      hooks: {
        draw: [(/** @type {any} */ chart) => drawMarks(chart, kept.band)],
        setCursor: [(/** @type {any} */ chart) => showTip(chart, kept.band)],
      },
    },
    dataOf(kept.band),
    host,
  );
}

/** @param {string} title */
const titled = (title) => ({ font: FONT, label: title, labelFont: FONT, labelSize: 18 });

/**
 * Show what is at the cursor, which all charts of windows share.
 *
 * @param {any} chart
 * @param {Band} band
 */
function showTip(chart, band) {
  const { idx, left } = chart.cursor;
  const said = left >= 0 && idx !== null ? (band.said?.[idx] ?? "") : "";
  const tip =
    chart.over.querySelector(".tip") ?? chart.over.appendChild(make("p", { className: "tip" }));
  tip.hidden = said === "";
  tip.textContent = said;
  // On the side that has more room.
  const right = left > chart.over.clientWidth / 2;
  tip.style.left = right ? "" : `${left + 8}px`;
  tip.style.right = right ? `${chart.over.clientWidth - left + 8}px` : "";
}

/**
 * Width of the widest text, in pixels.
 *
 * @param {string[]} texts
 */
function widthOf(texts) {
  const pen = /** @type {CanvasRenderingContext2D} */ (ruler.getContext("2d"));
  pen.font = FONT;
  return Math.max(0, ...texts.map((text) => pen.measureText(text).width));
}

/**
 * How far an axis's last number reaches beyond the last value, in pixels.
 *
 * @param {Band} band
 */
function roomAtTheEnd(band) {
  return band.time ? 22 : Math.max(22, widthOf([tickText(extentOf(band)[1], "")]) / 2 + 4);
}

/**
 * From the least to the largest value or end of a whisker.
 *
 * @param {Band} band
 * @returns {[number, number]}
 */
function extentOf({ x, across = [] }) {
  const ends = [...x, ...across.flatMap(({ low, high }) => [low, high])];
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  return low < high ? [low, high] : [low - 0.5, high + 0.5];
}

/**
 * A moment in UTC: the time of day, or the date where a new day begins.
 *
 * @param {number} seconds
 * @param {number | undefined} before The tick before it.
 */
function timeText(seconds, before) {
  const iso = new Date(1000 * seconds).toISOString();
  const day =
    seconds % 86400 === 0 ||
    (before !== undefined && !new Date(1000 * before).toISOString().startsWith(iso.slice(0, 10)));
  return day ? iso.slice(5, 10) : iso.slice(11, seconds % 60 ? 19 : 16);
}

/**
 * Whiskers and points, over what uPlot has drawn.
 *
 * @param {any} chart
 * @param {Band} band
 */
function drawMarks(chart, band) {
  /** @type {CanvasRenderingContext2D} */
  const pen = chart.ctx;
  const ratio = devicePixelRatio || 1;
  /** @param {number} value */
  const atX = (value) => chart.valToPos(value, "x", true);
  /** @param {number} value */
  const atY = (value) => chart.valToPos(value, "y", true);
  pen.save();
  pen.strokeStyle = colour("mark");
  pen.lineWidth = 1.5 * ratio;
  if (band.dots) {
    band.x.forEach((x, place) => {
      const [low, middle, high] = [band.low[place], band.middle[place], band.high[place]];
      pen.setLineDash(band.final[place] ? [] : [3 * ratio, 3 * ratio]);
      if (low !== null && high !== null) line(pen, atX(x), atY(low), atX(x), atY(high));
      pen.setLineDash([]);
      if (middle !== null) dot(pen, atX(x), atY(middle), 4 * ratio, band.final[place]);
    });
  }
  pen.strokeStyle = colour("accent");
  for (const { y, low, middle, high } of band.across ?? []) {
    pen.lineWidth = 3 * ratio;
    line(pen, atX(low), atY(y), atX(high), atY(y));
    pen.lineWidth = 1.5 * ratio;
    dot(pen, atX(middle), atY(y), 3.5 * ratio, false);
  }
  pen.restore();
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {number} fromX
 * @param {number} fromY
 * @param {number} toX
 * @param {number} toY
 */
function line(pen, fromX, fromY, toX, toY) {
  pen.beginPath();
  pen.moveTo(fromX, fromY);
  pen.lineTo(toX, toY);
  pen.stroke();
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {number} x
 * @param {number} y
 * @param {number} radius
 * @param {boolean} filled
 */
function dot(pen, x, y, radius, filled) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fillStyle = filled ? colour("mark") : colour("paper");
  pen.fill();
  pen.stroke();
}
