// Ranges, quantiles, means and values over windows, each a chart with its table.

import { drawBand, forgetChart, restyleCharts } from "../charts.js";
import { adjust, chosen } from "../choices.js";
import { element, figure, make, offer, say } from "../dom.js";
import {
  countText,
  decimalsFor,
  labelText,
  meanText,
  percentText,
  spanText,
  tickText,
} from "../format.js";
import { estimatesOf } from "../history.js";
import { extentOf, leadersOf, MOST_VALUES, MOST_VALUES_LISTED, seriesOf } from "../series.js";
import { fillTable } from "../table.js";
import { courseText } from "./course.js";

/** @typedef {import("../series.js").Point} Point */
/** @typedef {import("../series.js").Series} Series */
/** @typedef {import("../types.js").Shown} Shown */
/** @typedef {import("../types.js").WindowState} WindowState */

const DEFAULT_LAST = 24;

/** @type {import("../types.js").View} */
export const timeView = { id: "time", fits: () => true, update, restyle: restyleCharts };

/**
 * @param {Shown} shown
 * @param {() => boolean} current
 */
async function update({ collection, windows, window }, current) {
  const last = windows.slice(-(Number(chosen("last")) || DEFAULT_LAST));
  const top = collection.values <= MOST_VALUES_LISTED ? "all" : "0";
  // Lines of labels are chosen from many by their estimates, so their bounds must be simultaneous.
  const together = !collection.domain.ordered && collection.values > MOST_VALUES;
  const asked = /** @type {[string, string][]} */ ([
    ["top", top],
    ["simultaneous", String(together)],
  ]);
  const estimates = await estimatesOf(collection, last, asked, current);
  if (!current()) return null;
  const said = await courseText(collection, last, estimates, top === "all");
  if (!current()) return null;
  say(element("time-sum"), said);
  // Lines begin with the first window that is not withheld.
  const first = Math.max(
    0,
    estimates.findIndex(({ withheld }) => !withheld),
  );
  const names = pickedLines(collection, estimates);
  const series = seriesOf(collection, last.slice(first), estimates.slice(first), names);
  /** @param {boolean} final */
  const methodsOf = (final) =>
    [
      ...new Set(
        estimates.filter((one) => one.final === final && one.method).map((one) => one.method),
      ),
    ].join(", ") || "none";
  say(
    element("time-bounds"),
    `${last.length} windows. Bounds hold for each window by itself, and in it ` +
      `${together ? "for all values together" : "for each line by itself"} ` +
      `(final windows: ${methodsOf(true)}; open ones: ${methodsOf(false)}). ` +
      "Filled points are final, hollow ones with a dashed whisker provisional. Times are UTC.",
  );
  const host = element("time-charts");
  const titles = series.map(({ title }) => title);
  if (host.dataset.titles !== JSON.stringify(titles)) rebuild(titles);
  series.forEach((one, place) => drawSeries(figureId(place), one, extentOf(series, one.unit)));
  drawReports(last);
  return estimates[last.indexOf(window)] ?? null;
}

/** @param {() => void} changed */
export function startTime(changed) {
  /** @param {string[]} names */
  const follow = (names) => {
    adjust({ lines: names.length ? JSON.stringify(names) : "" });
    changed();
  };
  const more = /** @type {HTMLSelectElement} */ (element("add-line"));
  more.addEventListener("change", () => follow([...namesIn(chosen("lines")), more.value]));
  element("lines").addEventListener("click", ({ target }) => {
    const { line } = /** @type {HTMLElement} */ (target).dataset;
    if (line !== undefined) follow(namesIn(chosen("lines")).filter((one) => one !== line));
  });
}

/**
 * The values to show: those in the URL, where they stay once they are chosen.
 *
 * @param {import("../types.js").Collection} collection
 * @param {import("../types.js").Estimate[]} estimates
 * @returns {string[]}
 */
function pickedLines({ domain, values }, estimates) {
  const offered = !domain.ordered && values <= MOST_VALUES_LISTED;
  element("lines-part").hidden = !offered;
  if (!offered) return [];
  const all = estimates.findLast(({ distribution }) => distribution)?.distribution ?? [];
  const labels = all.map(({ value }) => labelText(value, domain));
  const wanted = namesIn(chosen("lines")).filter((name) => labels.includes(name));
  const names = wanted.length ? wanted : leadersOf(estimates, domain);
  if (names.length) adjust({ lines: JSON.stringify(names) });
  const picked = names.map((name) =>
    make(
      "button",
      { type: "button", "data-line": name, "aria-label": `${name}, remove` },
      `× ${name}`,
    ),
  );
  const shown = [...element("lines").children].map((one) => one.getAttribute("data-line"));
  if (shown.join("\n") !== names.join("\n")) element("lines").replaceChildren(...picked);
  const more = /** @type {HTMLSelectElement} */ (element("add-line"));
  /** @type {[string, string][]} */
  const others = labels.filter((one) => !names.includes(one)).map((name) => [name, name]);
  offer(more, [["", "+ add a line"], ...others], "");
  more.disabled = names.length >= MOST_VALUES || others.length === 0;
  return names;
}

/** @param {string} text @returns {string[]} Empty if it is not a list of texts. */
function namesIn(text) {
  try {
    const names = JSON.parse(text || "[]");
    return Array.isArray(names) ? names.filter((one) => typeof one === "string") : [];
  } catch {
    return [];
  }
}

/**
 * Numbered, because names may contain any characters, and ids may not.
 *
 * @param {number} place
 */
function figureId(place) {
  return `series-${place}`;
}

/** @param {string[]} titles */
function rebuild(titles) {
  const host = element("time-charts");
  host.dataset.titles = JSON.stringify(titles);
  for (const old of host.querySelectorAll(".chart-host"))
    forgetChart(/** @type {HTMLElement} */ (old));
  host.replaceChildren(
    ...titles.map((title, place) =>
      make(
        "figure",
        { id: figureId(place), className: "card" },
        make("figcaption", {}, make("h2", {}, title)),
        make("div", { className: "chart-host" }),
        make("details", {}, make("summary", {}, `Table of ${title}`), make("table", {})),
      ),
    ),
  );
}

/**
 * @param {string} id
 * @param {Series} series
 * @param {[number, number] | null} extent
 */
function drawSeries(id, { title, share, unit, points }, extent) {
  const figureElement = element(id);
  const scale = share ? 100 : 1;
  const decimals = decimalsFor(points);
  /** @param {number | null} value */
  const scaled = (value) => (value === null ? null : scale * value);
  /** @param {Point} point @param {0 | 1 | 2} which */
  const textOf = (point, which) => {
    if (point.texts.length) return point.texts[which];
    const value = [point.middle, point.low, point.high][which];
    return share ? percentText(value, decimals) : meanText(value, point);
  };
  /** @param {Point} point @param {0 | 1 | 2} which */
  const shown = (point, which) =>
    point.texts.length
      ? point.texts[which]
      : figure(textOf(point, which), [point.middle, point.low, point.high][which]);
  const host = /** @type {HTMLElement} */ (figureElement.querySelector(".chart-host"));
  drawBand(host, {
    x: points.map(({ window }) => Date.parse(window.window.start) / 1000),
    middle: points.map(({ middle }) => scaled(middle)),
    low: points.map(({ low }) => scaled(low)),
    high: points.map(({ high }) => scaled(high)),
    final: points.map(({ window }) => window.final),
    time: true,
    dots: true,
    yText: (value) => tickText(value, share ? "%" : ""),
    label: `Chart of ${title} over ${points.length} windows; its numbers are in the table below`,
    height: 200,
    xTitle: "start of the window (UTC)",
    yTitle: unit,
    extent: extent && [scale * extent[0], scale * extent[1]],
    said: points.map(
      (point) =>
        `${spanText(point.window.window)}: ${textOf(point, 0)} ` +
        `(${textOf(point, 1)} to ${textOf(point, 2)})${point.window.final ? "" : ", provisional"}`,
    ),
  });
  fillTable(
    /** @type {HTMLTableElement} */ (figureElement.querySelector("table")),
    [
      { title: "window (UTC)", kind: "name" },
      { title: "state" },
      { title: share ? "share" : "value" },
      { title: "low" },
      { title: "high" },
    ],
    [...points]
      .reverse()
      .map((point) => [
        spanText(point.window.window),
        point.window.final ? "final" : "provisional",
        shown(point, 0),
        shown(point, 1),
        shown(point, 2),
      ]),
  );
}

/** @param {WindowState[]} windows */
function drawReports(windows) {
  fillTable(
    /** @type {HTMLTableElement} */ (element("window-rows")),
    [
      { title: "window (UTC)", kind: "name" },
      { title: "state" },
      { title: "reports" },
      { title: "late" },
    ],
    [...windows]
      .reverse()
      .map(({ window, final, n, late }) => [
        spanText(window),
        final ? "final" : "provisional",
        figure(countText(n), n),
        figure(countText(late), late),
      ]),
  );
}
