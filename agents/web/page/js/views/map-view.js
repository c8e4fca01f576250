// The map of a grid at the resolution that the reports support: blocks, and areas that stand out.

import { ask, estimatePath } from "../api.js";
import { labelOf } from "../axis.js";
import { boundsText } from "../bounds.js";
import { adjust, chosen } from "../choices.js";
import { element, figure, make, say, select } from "../dom.js";
import {
  areaText,
  countText,
  forgedText,
  labelText,
  nameText,
  partText,
  percentText,
  tickText,
} from "../format.js";
import { fitCursor, pointedPlace, startGestures } from "./map-cursor.js";
import { changePicture } from "./map-change.js";
import {
  drawPicture,
  MARGIN,
  mayBeNone,
  painter,
  perPlace,
  rangeOf,
  restOf,
} from "./map-picture.js";
import { ownersOf, placesOf, sentenceOf, timesEven } from "./map-places.js";
import { hasShapes, shapesOf } from "./shapes.js";
import { fillTable } from "../table.js";

/** @typedef {import("./map-picture.js").Picture} Picture */

const MOST_PLACES = 100_000; // Larger domains have no areas.
const LISTED = 10;
const HIGHEST = 0.6; // Of the browser window's height.
const LEAST_WIDTH = 160; // Pixels.
const PADDING = 40; // Of the card around it, at most.
const LEAST_PLACES = 4; // In each direction of a view.
const LEAST_SHARE = 0.0005; // Less would be written as 0.0%.

const REST_MS = 250; // After the last gesture, the address has the new part.

/** @type {Picture | null} */
let drawn = null;
/** @type {string | null} The part after a gesture, until the address has it. */
let pendingZoom = null;
let [restTimer, paintFrame] = [0, 0];

/** @type {View} */
export const mapView = {
  id: "map",
  fits: (collection) => {
    const { domain, values } = collection;
    const places = domain.ordered && domain.shape.length === 2 && values <= MOST_PLACES;
    return places || hasShapes(collection);
  },
  compares: () => true,
  update,
  restyle: redraw,
};

/** Listen to the controls of the map. */
export function startMap() {
  element("map-in").addEventListener("click", () => zoom(2));
  element("map-out").addEventListener("click", () => zoom(0.5));
  element("map-fit").addEventListener("click", () => zoom(0));
  element("areas").addEventListener("toggle", fillAll);
  startGestures(zoomAt, moveBy);
  new ResizeObserver(redraw).observe(element("map"));
}

/** @param {Shown} shown @param {() => boolean} current @returns {Promise<Estimate>} */
async function update({ collection, window, change, method }, current) {
  /** @type {[Estimate, ChangeAnswer | null]} */
  const [estimate, answer] = await Promise.all([
    ask(estimatePath(collection.name, window.window, { top: 0, areas: true, method })),
    change,
  ]);
  if (!current() || estimate.withheld || !estimate.areas) return estimate;
  const all = estimate.areas.entries;
  const measure = measureOf(answer !== null);
  const drawnShapes = hasShapes(collection) ? await shapesOf(collection) : null;
  const blocks = measure === "blocks" || drawnShapes !== null;
  const moved = measure === "change" && answer ? changePicture(collection, answer, all) : null;
  // Blocks only: without the areas inside, each block is even.
  const areas = blocks
    ? all.filter(({ inside }) => inside === null).map((one) => ({ ...one, rest: null }))
    : all;
  if (drawnShapes) areas.forEach((one) => (one.values = 1)); // Shares of blocks, however large.
  const painted = moved ?? sharesOf(areas);
  const places = drawnShapes
    ? { ...drawnShapes, owner: ownersOf(drawnShapes.block, painted.areas) }
    : await placesOf(collection, painted.areas);
  if (!current()) return estimate;
  const domain = drawnShapes
    ? { ...collection.domain, axes: ["latitude", "longitude"] }
    : collection.domain;
  const shape = drawnShapes?.shape ?? /** @type {[number, number]} */ (domain.shape);
  drawn = {
    label: (axis, place) => labelOf(domain, axis, place),
    ...painted,
    ...places,
    shape,
    domain,
    view: viewOf(shape),
  };
  const { family } = estimate.areas;
  say(element("map-sum"), moved?.said ?? sentenceOf(all));
  const together = `for all ${countText(family)} areas that could have been shown, together`;
  say(
    element("map-bounds"),
    moved
      ? "Colour is the change of the share of a block, or of a part of fixed size where there are " +
          "no blocks; hatched unless its bounds exclude 0."
      : drawnShapes
        ? `Colour is the share of a block. ${boundsText(estimate, together)}`
        : "Colour is the share per place. An area has a colour of its own only where its bounds " +
          `exclude the even share of its surroundings. ${boundsText(estimate, together)}`,
  );
  element("areas").hidden = moved !== null;
  redraw();
  return estimate;
}

/**
 * What the map shows: what is chosen, else the change if spans are compared.
 *
 * @param {boolean} compared
 */
function measureOf(compared) {
  const list = select("measure");
  for (const option of list.options) {
    option.hidden = option.disabled = option.value === "change" && !compared;
  }
  const wanted = chosen("measure") || (compared ? "change" : "areas");
  return (list.value = wanted === "change" && !compared ? "areas" : wanted);
}

/**
 * The part of the grid that the URL asks for: the place in the middle, and the magnification.
 *
 * @param {[number, number]} shape
 */
function viewOf([rows, columns]) {
  const [row, column, factor] = partShown();
  const times = factor > 1 ? factor : 1;
  const high = Math.min(rows, Math.max(LEAST_PLACES, Math.round(rows / times)));
  const wide = Math.min(columns, Math.max(LEAST_PLACES, Math.round(columns / times)));
  /** @param {number} middle @param {number} part @param {number} whole */
  const from = (middle, part, whole) =>
    Math.min(whole - part, Math.max(0, Math.round((middle || 0) - part / 2)));
  return {
    row: from(row, high, rows),
    column: from(column, wide, columns),
    rows: high,
    columns: wide,
  };
}

/** @returns {number[]} The row and the column in the middle, and the magnification. */
const partShown = () => (pendingZoom ?? chosen("zoom")).split(",").map(Number);

/** @param {number} row @param {number} column @param {number} factor In the address after a rest. */
function centreOn(row, column, factor) {
  if (!drawn) return;
  paintFrame ||= requestAnimationFrame(() => {
    paintFrame = 0;
    paint();
  });
  pendingZoom = factor > 1 ? `${row},${column},${factor}` : "";
  clearTimeout(restTimer);
  restTimer = window.setTimeout(() => {
    const [down, across, times] = partShown();
    adjust({ zoom: times > 1 ? `${Math.round(down)},${Math.round(across)},${times}` : "" });
    pendingZoom = null;
    redraw();
  }, REST_MS);
}

/** @param {number} by @param {number} row @param {number} column Stays where it is. */
function zoomAt(by, row, column) {
  if (!drawn) return false;
  const { view, shape } = drawn;
  const most = Math.max(1, Math.max(...shape) / LEAST_PLACES);
  const [centre, middle, before = 1] = partShown();
  const factor = Math.min(most, Math.max(1, before * by));
  if (factor === 1 && before === 1) return false;
  const whole = [view.row + view.rows / 2, view.column + view.columns / 2];
  const [down, across] = before > 1 ? [centre, middle] : whole;
  const times = before / factor;
  centreOn(row + (down - row) * times, column + (across - column) * times, factor);
  return true;
}

/** @param {number} rows @param {number} columns Returns whether there is more than is shown. */
function moveBy(rows, columns) {
  if (!drawn) return false;
  const { view, shape } = drawn;
  const [row, column, factor] = partShown();
  if (!(factor > 1)) return false;
  /** @param {number} middle @param {number} part @param {number} whole */
  const within = (middle, part, whole) => Math.min(whole - part / 2, Math.max(part / 2, middle));
  if (rows || columns) {
    centreOn(
      within(row + rows, view.rows, shape[0]),
      within(column + columns, view.columns, shape[1]),
      factor,
    );
  }
  return true;
}

/** @param {number} by 0 for the whole. */
function zoom(by) {
  if (!drawn) return;
  const { view } = drawn;
  const [row, column] = pointedPlace() ?? [
    view.row + view.rows / 2,
    view.column + view.columns / 2,
  ];
  const factor = by * (partShown()[2] || 1);
  if (by > 1 && view.rows <= LEAST_PLACES && view.columns <= LEAST_PLACES) return;
  adjust({ zoom: factor > 1 ? `${Math.round(row)},${Math.round(column)},${factor}` : "" });
  redraw();
}

function redraw() {
  if (!paint() || !drawn) return;
  const { areas } = drawn;
  drawLegend(drawn);
  const told = areas
    .map((_, place) => place)
    .filter((place) => areas[place].inside !== null)
    .sort((a, b) => distance(b) - distance(a));
  element("stand-out").hidden = told.length === 0;
  fillAreas("area-rows", told.slice(0, LISTED));
  fillAll();
}

/** Draw the picture. Returns whether there is room for it. */
function paint() {
  const frame = element("map-frame");
  const room = frame.parentElement?.clientWidth ?? 0;
  if (!drawn || !room) return false;
  const view = (drawn.view = viewOf(drawn.shape));
  // As large as there is room, but never higher than the browser window.
  const across = room - PADDING - MARGIN.left - MARGIN.right;
  const down = HIGHEST * window.innerHeight - MARGIN.top - MARGIN.bottom;
  const each = Math.min(across / view.columns, down / view.rows);
  const wide = Math.max(each * view.columns, Math.min(across, LEAST_WIDTH));
  frame.style.width = `${wide + MARGIN.left + MARGIN.right}px`;
  frame.style.height = `${each * view.rows + MARGIN.top + MARGIN.bottom}px`;
  drawPicture(/** @type {HTMLCanvasElement} */ (element("map-canvas")), drawn);
  fitCursor(drawn.shape, view, tipOf, zoom);
  return true;
}

/** @param {number} place Returns how far it is from an even share, up or down. */
function distance(place) {
  const times = drawn ? timesEven(drawn.areas, place) : null;
  return times === null ? 0 : Math.abs(Math.log(Math.max(times, 1e-3)));
}

/** Fill the table of all areas, but only while it is open. */
function fillAll() {
  if (!drawn || !(/** @type {HTMLDetailsElement} */ (element("areas")).open)) return;
  fillAreas("all-area-rows", [...drawn.areas.keys()]);
}

/** @param {AreaEntry[]} areas Returns the decimals for two digits of the narrowest bounds. */
function decimalsOf(areas) {
  const widths = areas.map(({ low, high }) => (high ?? 0) - (low ?? 0)).filter((one) => one > 0);
  const least = widths.length ? 50 * Math.min(...widths) : 1;
  return Math.min(6, Math.max(1, 1 - Math.floor(Math.log10(least))));
}

/** @param {string} id @param {number[]} places Of the areas, in order. */
function fillAreas(id, places) {
  if (!drawn) return;
  const { areas, domain } = drawn;
  const decimals = decimalsOf(areas);
  /** @param {number | null} share */
  const percent = (share) => figure(percentText(share, decimals), share);
  fillTable(
    id,
    [
      { title: "area", kind: "name" },
      { title: "block", kind: "more" },
      { title: "share" },
      { title: "low" },
      { title: "high" },
      { title: "against an even share" },
      { title: "forgeries needed", kind: "more" },
    ],
    places.map((place) => {
      const { block, share, low, high, forged } = areas[place];
      const needed = forged === null ? "–" : figure(countText(forged), forged);
      const against = areas[place].inside === null ? "–" : againstText(place);
      const own =
        block === null ? "–" : (domain.block_names?.[block] ?? figure(String(block), block));
      const name = areaText(areas[place]);
      return [name, own, percent(share), percent(low), percent(high), against, needed];
    }),
  );
}

/** @param {number} place */
function againstText(place) {
  if (!drawn) return "";
  if (mayBeNone(drawn.areas[place])) return make("span", { className: "fell" }, "▼ may be 0");
  const times = timesEven(drawn.areas, place);
  if (times === null) return "–";
  const rose = times > 1;
  const text = `${rose ? "▲" : "▼"} ${tickText(times, "", times < 10 ? 2 : 3)} times`;
  return make("span", { className: rose ? "rose" : "fell" }, text);
}

/** @param {Picture} picture */
function drawLegend({ areas, hatched, legend }) {
  const canvas = /** @type {HTMLCanvasElement} */ (element("legend"));
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const colourAt = legend.paint();
  for (let step = 0; step < canvas.width; step += 1) {
    pen.fillStyle = colourAt(step / (canvas.width - 1));
    pen.fillRect(step, 0, 1, 1);
  }
  say(element("legend-title"), legend.title);
  say(element("hatch-words"), legend.unsure);
  element("ticks").replaceChildren(...legend.ticks.map((text) => make("span", {}, text)));
  element("hatch-key").hidden = !areas.some(hatched);
}

/**
 * The picture of shares per place.
 *
 * @param {AreaEntry[]} areas
 * @returns {Painted}
 */
function sharesOf(areas) {
  const range = rangeOf(areas);
  const [low, high] = range;
  const decimals = decimalsOf(areas);
  /** @param {number | null} value */
  const percent = (value) => figure(percentText(value, decimals), value);
  const powers = Math.round(Math.log10(high / low));
  return {
    areas,
    paint: () => {
      const colourOf = painter(range);
      return (area) => colourOf(perPlace(area));
    },
    hatched: mayBeNone,
    written: ({ share }) => ((share ?? 0) < LEAST_SHARE ? "" : percentText(share, 1)),
    legend: {
      title: "share per place, logarithmic",
      unsure: "may be 0",
      ticks: Array.from({ length: powers + 1 }, (_, power) => partText(low * 10 ** power, 3)),
      paint: () => {
        const colourOf = painter(range);
        return (at) => colourOf(low * (high / low) ** at);
      },
    },
    rows: (area) => {
      const { share, low, high } = restOf(area);
      const exact = area.bound === "known" && !area.rest;
      const bounds = exact ? ["exact"] : [percent(low), " to ", percent(high)];
      const against = againstText(areas.indexOf(area));
      const needed = area.forged === null || area.rest ? "" : countText(area.forged);
      return [
        { name: "share", value: percent(share), bounds },
        ...(area.inside === null ? [] : [{ name: "against an even share", value: against }]),
        ...(needed
          ? [{ name: "beyond its bounds with", value: forgedText(area.forged ?? 0) }]
          : []),
      ];
    },
  };
}

/** @param {number} cell @returns {Tip} */
function tipOf(cell) {
  const { areas, owner, shape, label, domain, rows } = /** @type {Picture} */ (drawn);
  const area = areas[owner[cell]];
  if (!area) return { title: "outside of all blocks", rows: [] };
  if (!area.box) return { title: areaText(area), rows: rows(area) };
  const place = /** @type {Label} */ ([
    label(0, Math.floor(cell / shape[1])),
    label(1, cell % shape[1]),
  ]);
  const { values } = restOf(area);
  const name = area.rest ? `the rest of ${areaText(area)}` : areaText(area);
  const outer = nameText(domain.block_names?.[area.block ?? -1] ?? `block ${area.block}`);
  const where = area.block === null || area.inside === null ? "" : ` in ${outer}`;
  return {
    title: `Place ${labelText(place, domain)}`,
    more: `${name}${where}, ${countText(values)} places`,
    rows: rows(area),
  };
}
