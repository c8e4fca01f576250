// Picked ranges, quantiles, means and labels over windows: lines that share a scale, and reports.

import { ask, estimatePath, queryPath } from "../api.js";
import { methodFor, withinText } from "../bounds.js";
import { drawChart, forgetChart, gutterOf, markChart, nearest, valueAt } from "../charts/charts.js";
import { glyph, LOOKS } from "../charts/looks.js";
import { FONT, widthOf } from "../charts/ticks.js";
import { along, pointAt } from "../charts/tooltip.js";
import { choose, chosen } from "../choices.js";
import { element, make, say } from "../dom.js";
import { clockText, confidenceText, countText, spanText, tickText, zoneOf } from "../format.js";
import { periodName } from "../periods.js";
import {
  extentOf,
  MOST_LINES,
  MOST_VALUES_LISTED,
  quantileOptions,
  seriesOf,
  seriesTitle,
  spotsOf,
} from "../series.js";
import { showLines, startLines, wantedLines } from "./lines.js";
import { drawSpans, spansOf, startSpans } from "./span.js";
import { keepLines } from "./time-file.js";
import { fillWindows, writer } from "./time-table.js";
import { valuesView } from "./values-view.js";
import { askChange, changesIn, isShown, listText } from "./changes.js";

/**
 * @typedef {object} Drawn
 * @property {Collection} collection
 * @property {Spot[]} spots
 * @property {Series[]} series
 * @property {WindowState} window The one that is shown in other views.
 */
/** @typedef {{kind: Series["kind"], title: string, name: Label}} Offered */

const [TALL, LOW, REPORTS] = [340, 220, 130]; // Pixels of one panel, of each of several, of reports.

/** @type {View} */
export const timeView = { id: "time", fits: () => true, update };

let turned = () => {};

/** @param {() => void} changed */
export function startTime(changed) {
  startLines(changed);
  startSpans(changed);
  turned = changed;
}

/** @param {Shown} shown @param {() => boolean} current @returns {Promise<Estimate | null>} */
async function update(shown, current) {
  const { collection, windows, window } = shown;
  drawSpans(collection);
  const estimate = await askAll(collection, window);
  const others = windows.filter((one) => one !== window && one.n >= collection.minimum);
  const other = others.findLast(({ final }) => final) ?? others.at(-1);
  const all = offeredBy(
    collection,
    estimate?.withheld ? await askAll(collection, other) : estimate,
  );
  const offered = all.map(({ title }) => title);
  const wanted = wantedLines(offered);
  const titles = wanted.length ? wanted : await defaultLines(shown, all);
  if (!current()) return null;
  showLines(titles, offered);
  const values = all.filter(({ kind, title }) => kind === "value" && titles.includes(title));
  const answers = await askSeries(collection, windows, values);
  const spots = answers.flatMap(spotsOf);
  const said = await courseText(collection, spots, titles);
  if (!current()) return null;
  say(element("time-sum"), said);
  /** @param {boolean} final */
  const methodOf = (final) => spots.find((spot) => spot.final === final)?.of.method ?? "none";
  const most = Math.max(1, ...answers.map(({ windows_a_point }) => windows_a_point));
  say(
    element("time-bounds"),
    (most > 1 ? `Each point adds up to ${countText(most)} windows. ` : "") +
      `Bounds hold with ${confidenceText(collection.confidence)} confidence for each ` +
      `${most > 1 ? "point" : "window"} by itself: in it for all values together, drawn or not, ` +
      "and likewise for all ranges, all quantiles and all means (final windows: " +
      `${methodOf(true)}; open ones: ${methodOf(false)}). Rise and fall: the ` +
      `first final one against the last. ${withinText()}`,
  );
  const lines = seriesOf(answers, collection.domain);
  const series = titles.flatMap((title) => lines.find((one) => one.title === title) ?? []);
  draw({ collection, spots, series, window });
  return estimate;
}

/**
 * What a window says of all that can be a line.
 *
 * @param {Collection} collection
 * @param {WindowState | undefined} window
 * @returns {Promise<Estimate | null>}
 */
async function askAll(collection, window) {
  if (!window) return null;
  return ask(
    estimatePath(collection.name, window.window, {
      top: collection.values <= MOST_VALUES_LISTED ? "all" : 0,
      simultaneous: true,
      method: methodFor(collection, window, chosen("method")),
      ...quantileOptions(collection),
    }),
  );
}

/**
 * The series of final windows and of open ones, with what is published and these values.
 *
 * @param {Collection} collection
 * @param {WindowState[]} windows
 * @param {Offered[]} values
 * @returns {Promise<SeriesAnswer[]>}
 */
async function askSeries(collection, windows, values) {
  const value = values.map(({ name }) => (Array.isArray(name) ? JSON.stringify(name) : `${name}`));
  const answers = await Promise.all(
    spansOf(collection, windows).map(({ open, options }) => {
      const newest = windows.findLast(({ final }) => final !== open);
      const method = newest ? methodFor(collection, newest, chosen("method")) : collection.method;
      const asked = { ...options, top: 0, published: true, method, value };
      return ask(queryPath(collection.name, "series", asked));
    }),
  );
  return answers.filter(({ points }) => points.start.length);
}

/**
 * All that can be drawn. Values are only lines if they are labels: for numbers, ranges, quantiles and
 * means say more.
 *
 * @param {Collection} collection
 * @param {Estimate | null} estimate
 * @returns {Offered[]}
 */
function offeredBy({ domain }, estimate) {
  const { ranges = [], quantiles = [], linear = [], distribution = [] } = estimate ?? {};
  const leaders = [...distribution].sort((a, b) => (b.share ?? 0) - (a.share ?? 0));
  /** @type {[Series["kind"], Label[]][]} */
  const all = [
    ["range", ranges.map(({ name }) => name)],
    ["quantile", quantiles.map(({ p }) => p)],
    ["linear", linear.map(({ name }) => name)],
    ["value", domain.ordered ? [] : leaders.map(({ value }) => value)],
  ];
  return all.flatMap(([kind, names]) =>
    names.map((name) => ({ kind, name, title: seriesTitle(kind, name, domain) })),
  );
}

/**
 * The lines to show unless others are picked: ranges, else quantiles, else the labels that lead in the
 * first final window, else means. Not by the newest window, which would make lines come and go.
 *
 * @param {Shown} shown
 * @param {Offered[]} offered
 */
async function defaultLines({ collection, windows }, offered) {
  for (const kind of ["range", "quantile", "value", "linear"]) {
    const titles = offered.filter((one) => one.kind === kind).map(({ title }) => title);
    if (kind === "value" && titles.length > MOST_LINES) {
      const first = windows.find(({ final, n }) => final && n >= collection.minimum);
      const leaders = offeredBy(collection, await askAll(collection, first));
      const found = leaders.filter((one) => one.kind === kind).map(({ title }) => title);
      return (found.length ? found : titles).slice(0, MOST_LINES);
    }
    if (titles.length) return titles.slice(0, MOST_LINES);
  }
  return [];
}

/** @param {Drawn} drawn */
function draw(drawn) {
  const { spots, series } = drawn;
  keepLines(series);
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
      `${spots.length} windows: arrow keys move from window to window; its numbers are in the ` +
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
function panelsOf({ collection, spots, series }) {
  const units = [...new Set(series.map(({ unit }) => unit))];
  const step = collection.window.hop_ms / 1000;
  const wide = spots.map((spot) => manyOf(collection, spot));
  const x = middlesOf(collection, spots);
  const shared = {
    x,
    step,
    wide,
    zone: collection.window.timezone,
    notes: (collection.annotations ?? []).map(({ time }) => Date.parse(time) / 1000),
    final: spots.map(({ final }) => final),
    columns: spots.flatMap((one, at) => columnOf(one, x[at], wide[at], collection)),
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
  const most = Math.max(1, ...spots.map(({ n }) => n));
  charts.push({
    ...shared,
    columns: undefined,
    extent: [0, 1.1 * most],
    lines: [],
    bars: spots.map(({ n }) => n),
    hatched: spots.map(({ withheld }) => withheld),
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

/** @param {Collection} collection @param {Spot[]} spots Returns where they are drawn, in seconds. */
const middlesOf = (collection, spots) =>
  spots.map((spot) => {
    const steps = (manyOf(collection, spot) - 1) / 2;
    return (Date.parse(spot.window.start) + steps * collection.window.hop_ms) / 1000;
  });

/** @param {Collection} collection @param {Spot} spot Returns how many windows it spans. */
function manyOf({ window: { size_ms, hop_ms } }, { window: { start, end } }) {
  return 1 + Math.max(0, Date.parse(end) - Date.parse(start) - size_ms) / hop_ms;
}

/**
 * @param {Spot} spot
 * @param {number} x
 * @param {number} wide
 * @param {Collection} collection
 * @returns {ChartColumn[]}
 */
function columnOf({ final, withheld, n }, x, wide, { minimum }) {
  if (!withheld) return final ? [] : [{ x, wide, kind: "open", text: "open" }];
  const of = n < minimum ? `: ${countText(n)} of ${countText(minimum)}` : "";
  return [{ x, wide, kind: "withheld", text: `withheld${of}` }];
}

/** @param {Series} series */
function newestText(series) {
  const known = series.points.filter(({ middle }) => middle !== null);
  const point = known.findLast(({ spot }) => spot.final) ?? known.at(-1);
  if (!point) return "";
  return `${writer(series)(point)[0]} ${point.spot.final ? "final" : "open"}`;
}

/**
 * A window can be pointed at; Enter opens it, and C compares with it.
 *
 * @param {HTMLElement} host
 * @param {Drawn} drawn
 * @returns {Pointed<string>}
 */
function pointedOf(host, { collection, spots, series, window: shown }) {
  /** @param {Spot | undefined} one */
  const comparable = (one) =>
    one?.final && one.window.start !== shown.window.start && valuesView.compares?.(collection);
  const starts = spots.map(({ window }) => window.start);
  const places = middlesOf(collection, spots);
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
      const { window, final, n, withheld, of } = spots[at];
      const known = series.filter(({ points }) => points[at].middle !== null);
      const state = withheld ? "withheld, " : "";
      const windows = countText(Math.round(manyOf(collection, spots[at])));
      const together = of.windows_a_point > 1 ? "together" : "that are shown only together";
      return {
        title: spanText(window),
        more: `${state}${final ? "final" : "open"} · ${countText(n)} reports`,
        rows: known.map((one) => {
          const [value, low, high] = writer(one)(one.points[at]);
          const mark = glyph(LOOKS[series.indexOf(one)]);
          return { mark, name: one.title, value, bounds: [`${low} to ${high}`] };
        }),
        notes: windows === "1" ? [] : [`${windows} windows ${together}`],
        keys: `Enter opens this window${comparable(spots[at]) ? ", C compares with it" : ""}`,
      };
    },
    act: (start, key) => {
      const at = starts.indexOf(start ?? "");
      const compares = key.toLowerCase() === "c" && comparable(spots[at]);
      if (at < 0 || (key !== "Enter" && !compares)) return false;
      const { window } = spots[at];
      const name = spots[at].of.windows_a_point > 1 ? periodName(window) : window.start;
      choose({ view: "values", [compares ? "compare" : "window"]: name });
      turned();
      return true;
    },
  };
}

/**
 * @param {Collection} collection
 * @param {Spot[]} spots Oldest first.
 * @param {string[]} titles Of the lines that are drawn.
 */
async function courseText(collection, spots, titles) {
  const finals = spots.filter(({ final, withheld }) => final && !withheld);
  const [first, last] = [finals.at(0)?.window, finals.at(-1)?.window];
  if (!first || !last) return "No final window has numbers yet.";
  const since = `Since ${clockText(first.start)}`;
  if (Date.parse(last.start) < Date.parse(first.end))
    return `${since} no other final window has numbers: nothing to compare yet.`;
  if (titles.length === 0) return "";
  const answer = await askChange(collection, last, first, collection.method);
  if (answer.withheld) return `${since} nothing is compared: ${answer.reason}.`;
  const told = changesIn(answer, collection).filter(({ name }) => titles.includes(name));
  const moved = told.filter(({ change }) => isShown(change)).map(movedText);
  const others = told.filter(({ change }) => !isShown(change)).map(({ name }) => name);
  const same = listText(others, MOST_LINES);
  if (moved.length === 0) return same && `${since}: no difference shown for ${same}.`;
  return `${since} ${listText(moved, MOST_LINES)}${same && `; ${same}: no difference shown`}.`;
}

/** @param {Told} told */
function movedText({ name, change, textOf, unit }) {
  const rose = change.low > 0;
  const [low, high] = rose ? [change.low, change.high] : [-change.high, -change.low];
  /** @param {number} value */
  const plain = (value) => textOf(value).replace("+", "");
  const much = plain(Math.abs(change.value));
  return `${name} ${rose ? "rose" : "fell"} by ${much}${unit} (${plain(low)} to ${plain(high)})`;
}
