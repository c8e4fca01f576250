// Picked ranges, quantiles, means and labels over windows: lines that share a scale, and reports.

import { drawChart, forgetChart, gutterOf, markChart, nearest, valueAt } from "../charts/charts.js";
import { choose } from "../choices.js";
import { element, make, say } from "../dom.js";
import { WITHIN } from "../bounds.js";
import { confidenceText, countText, labelText, spanText, tickText, zoneOf } from "../format.js";
import { estimatesOf, spansOnce } from "../history.js";
import { glyph, LOOKS } from "../charts/looks.js";
import { extentOf, MOST_VALUES_LISTED, quantileOptions, seriesOf, titled } from "../series.js";
import { FONT, widthOf } from "../charts/ticks.js";
import { along, pointAt } from "../charts/tooltip.js";
import { courseText } from "./course.js";
import { pickedLines, startLines } from "./lines.js";
import { fillWindows, writer } from "./time-table.js";
import { drawSpans, spanOf, startSpans } from "./span.js";
import { keepLines } from "./time-file.js";
import { valuesView } from "./values-view.js";

/** @typedef {import("../charts/charts.js").Chart} Chart */
/** @typedef {import("../series.js").Series} Series */
/** @typedef {import("../types.js").Collection} Collection */
/** @typedef {import("../types.js").Estimate} Estimate */
/** @typedef {import("../types.js").Shown} Shown */
/** @typedef {import("../types.js").WindowState} WindowState */
/**
 * @typedef {object} Drawn
 * @property {Collection} collection
 * @property {WindowState[]} windows Or spans of those that are shown only together.
 * @property {WindowState[][]} parts The windows of each.
 * @property {Estimate[]} estimates
 * @property {Series[]} series
 * @property {WindowState} window The one that is shown in other views.
 */

const [TALL, LOW, REPORTS] = [340, 220, 130]; // Pixels of one panel, of each of several, of reports.

/** @type {import("../types.js").View} */
export const timeView = { id: "time", fits: () => true, update };

let turned = () => {};

/** @param {() => void} changed */
export function startTime(changed) {
  startLines(changed);
  startSpans(changed);
  turned = changed;
}

/**
 * @param {Shown} shown
 * @param {() => boolean} current
 */
async function update({ collection, windows, window }, current) {
  drawSpans(collection);
  const last = windows.slice(-spanOf());
  // What is picked may be what stands out: all of its kind is bounded together.
  const asked = /** @type {[string, string][]} */ ([
    ["top", collection.values <= MOST_VALUES_LISTED ? "all" : "0"],
    ["simultaneous", "true"],
    ...quantileOptions(collection),
  ]);
  const all = await estimatesOf(collection, last, asked, current);
  if (!current()) return null;
  const { windows: spans, parts, estimates } = spansOnce(last, all);
  const titles = pickedLines(collection, estimates, offeredBy(collection, estimates));
  const said = await courseText(collection, estimates, titles);
  if (!current()) return null;
  say(element("time-sum"), said);
  /** @param {boolean} final */
  const methodsOf = (final) => {
    const same = estimates.filter((one) => one.final === final && one.method);
    return [...new Set(same.map(({ method }) => method))].join(", ") || "none";
  };
  say(
    element("time-bounds"),
    `Bounds hold with ${confidenceText(collection.confidence)} confidence for each window by ` +
      "itself: in it for all values together, drawn or not, and likewise for all ranges, all " +
      `quantiles and all means (final windows: ${methodsOf(true)}; open ones: ${methodsOf(false)}). Rise and fall: the ` +
      `first final window against the last. ${WITHIN}`,
  );
  const series = titled(collection, spans, estimates, titles);
  draw({ collection, windows: spans, parts, estimates, series, window });
  return all[last.indexOf(window)] ?? null;
}

/**
 * All that can be drawn, without points.
 *
 * @param {Collection} collection
 * @param {Estimate[]} estimates
 */
function offeredBy(collection, estimates) {
  const newest = estimates.findLast(({ withheld }) => !withheld);
  const labels = newest?.distribution?.map(({ value }) => labelText(value, collection.domain));
  return newest ? seriesOf(collection, [], [newest], labels ?? []) : [];
}

/** @param {Drawn} drawn */
function draw(drawn) {
  const { windows, estimates, series } = drawn;
  keepLines(windows, estimates, series);
  const host = element("time-charts");
  const charts = panelsOf(drawn);
  while (host.children.length > charts.length) {
    forgetChart(/** @type {HTMLElement} */ (host.lastElementChild));
    host.lastElementChild?.remove();
  }
  // A panel is built again if its height differs: then others came or went.
  charts.forEach((chart, place) => {
    const known = /** @type {HTMLElement | undefined} */ (host.children[place]);
    const same = known?.dataset.height === `${chart.height}`;
    const panel = known ?? host.appendChild(make("div", { className: "chart-host" }));
    panel.dataset.height = `${chart.height}`;
    if (known && !same) forgetChart(panel);
    drawChart(panel, chart);
  });
  host.setAttribute(
    "aria-label",
    `Chart of ${series.map(({ title }) => title).join(", ")} and of reports over ` +
      `${windows.length} windows: arrow keys move from window to window; its numbers are in the ` +
      "table below",
  );
  fillWindows(drawn);
  pointAt(host, pointedOf(host, drawn));
}

/**
 * One panel for each unit, and one of reports, all with the same times.
 *
 * @param {Drawn} drawn
 * @returns {Chart[]}
 */
function panelsOf({ collection, windows, parts, estimates, series }) {
  const units = [...new Set(series.map(({ unit }) => unit))];
  const step = collection.window.hop_ms / 1000;
  const x = parts.map(placeOf);
  const wide = parts.map((part) => (timeOf(part[part.length - 1]) - timeOf(part[0])) / step + 1);
  const shared = {
    x,
    step,
    wide,
    zone: collection.window.timezone,
    notes: (collection.annotations ?? []).map(({ time }) => Date.parse(time) / 1000),
    final: windows.map(({ final }) => final),
    columns: windows.flatMap((one, at) => columnOf(one, x[at], wide[at], estimates[at])),
  };
  /** @type {Chart[]} */
  const charts = units.map((unit) => {
    const same = series.filter((one) => one.unit === unit);
    const scale = same[0].share ? 100 : 1;
    const [low, high] = extentOf(same);
    /** @param {number | null} value */
    const scaled = (value) => (value === null ? null : scale * value);
    return {
      ...shared,
      extent: [scale * low, scale * high],
      lines: same.map((one) => ({
        ...LOOKS[series.indexOf(one)],
        middle: one.points.map(({ middle }) => scaled(middle)),
        low: one.points.map(({ low }) => scaled(low)),
        high: one.points.map(({ high }) => scaled(high)),
        label: [one.title, newestText(one)],
      })),
      height: units.length > 1 ? LOW : TALL,
      xTitle: "",
      yTitle: unit,
      yText: (value) => tickText(value, scale === 100 ? "%" : ""),
    };
  });
  const each = parts.flat();
  const most = Math.max(1, ...each.map(({ n }) => n));
  charts.push({
    ...shared,
    x: each.map(timeOf),
    wide: undefined,
    final: each.map(({ final }) => final),
    columns: undefined,
    extent: [0, 1.1 * most],
    lines: [],
    bars: each.map(({ n }) => n),
    hatched: each.map(({ n }) => n < collection.minimum),
    height: REPORTS,
    xTitle: `start of the window (${zoneOf(collection.window.timezone)})`,
    yTitle: "reports",
    yText: (value) => tickText(value, ""),
  });
  const gutter = Math.max(...charts.map(gutterOf));
  const labels = charts.flatMap(({ lines }) => lines.flatMap(({ label }) => label ?? []));
  const room = Math.max(22, widthOf(labels, `600 ${FONT}`) + 10);
  return charts.map((one) => ({ ...one, gutter, room }));
}

/** @param {WindowState} window */
const timeOf = ({ window }) => Date.parse(window.start) / 1000;

/** @param {WindowState[]} part The middle of the starts of windows. */
const placeOf = (part) => (timeOf(part[0]) + timeOf(part[part.length - 1])) / 2;

/**
 * @param {WindowState} window
 * @param {number} x
 * @param {number} wide
 * @param {Estimate} estimate
 * @returns {import("../charts/charts.js").Column[]}
 */
function columnOf(window, x, wide, { withheld, n, waiting }) {
  if (!withheld) return window.final ? [] : [{ x, wide, kind: "open", text: "open" }];
  const more = waiting?.more;
  const of = more ? `: ${countText(n)} of ${countText(n + more)}` : "";
  return [{ x, wide, kind: "withheld", text: `withheld${of}` }];
}

/** @param {Series} series */
function newestText(series) {
  const known = series.points.filter(({ middle }) => middle !== null);
  const point = known.findLast(({ window }) => window.final) ?? known.at(-1);
  if (!point) return "";
  return `${writer(series)(point)[0]} ${point.window.final ? "final" : "open"}`;
}

/**
 * A window can be pointed at; Enter opens it, and C compares with it.
 *
 * @param {HTMLElement} host
 * @param {Drawn} drawn
 * @returns {import("../charts/tooltip.js").Pointed<string>}
 */
function pointedOf(host, { collection, windows, parts, estimates, series, window: shown }) {
  /** @param {WindowState | undefined} one */
  const comparable = (one) => one?.final && one !== shown && valuesView.compares?.(collection);
  const starts = parts.map(([{ window }]) => window.start);
  const places = parts.map(placeOf);
  const panels = /** @type {HTMLElement[]} */ ([...host.children]);
  return {
    at: ({ clientX }) => {
      const time = valueAt(panels[0], clientX);
      return time === null ? null : starts[nearest(places, time)];
    },
    move: (start, key) => along(starts, start, key, true),
    mark: (start) => {
      const time = start === null ? null : (places[starts.indexOf(start)] ?? null);
      const [box] = panels.map((panel) => markChart(panel, time));
      return box;
    },
    tip: (start) => {
      const at = starts.indexOf(start);
      if (at < 0) return null;
      const { window, final, n } = windows[at];
      const known = series.filter(({ points }) => points[at].middle !== null);
      const state = estimates[at].withheld ? "withheld, " : "";
      return {
        title: spanText(window),
        more: `${state}${final ? "final" : "open"} · ${countText(n)} reports`,
        rows: known.map((one) => {
          const [value, low, high] = writer(one)(one.points[at]);
          const mark = glyph(LOOKS[series.indexOf(one)]);
          return { mark, name: one.title, value, bounds: [`${low} to ${high}`] };
        }),
        notes:
          parts[at].length > 1 ? [`${parts[at].length} windows that are shown only together`] : [],
        keys: `Enter opens this window${comparable(windows[at]) ? ", C compares with it" : ""}`,
      };
    },
    act: (start, key) => {
      const at = starts.indexOf(start ?? "");
      const compares = key.toLowerCase() === "c" && comparable(windows[at]);
      if (at < 0 || (key !== "Enter" && !compares)) return false;
      choose({ view: "values", [compares ? "compare" : "window"]: starts[at] });
      turned();
      return true;
    },
  };
}
