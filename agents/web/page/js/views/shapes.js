// Blocks that have shapes, in GeoJSON, as places of a grid, which the map draws like any other.

import { ask, collectionPath } from "../api.js";

/** @typedef {[number, number]} Point Longitude and latitude. */
/** @typedef {{block: number, rings: Point[][]}} Polygon Its outline, and its holes. */
/** @typedef {{block: Int32Array, shape: [number, number], label: (axis: number, place: number) => number}} Places */

const LONGER_SIDE = 200; // Places.
const OUTSIDE = -1;

/** @type {Map<string, Promise<Places>>} By fingerprint. */
const kept = new Map();

/** @param {Collection} collection Returns whether its map is one of shapes: a grid has its own. */
export const hasShapes = ({ geojson, domain, attribute }) =>
  geojson === true &&
  !attribute &&
  (domain.blocks ?? 0) > 1 &&
  !(domain.ordered && domain.shape.length === 2);

/**
 * The block of each place, from north to south and from west to east; -1 where there is none.
 *
 * @param {Collection} collection
 * @returns {Promise<Places>}
 */
export function shapesOf({ name, fingerprint, block_names }) {
  const made =
    kept.get(fingerprint) ??
    ask(`${collectionPath(name)}/geojson`).then(({ features }) =>
      placesIn(features.flatMap((/** @type {any} */ one) => polygonsOf(one, block_names ?? []))),
    );
  kept.set(fingerprint, made);
  made.catch(() => kept.delete(fingerprint));
  return made;
}

/**
 * @param {{id: string | number, geometry: any}} feature
 * @param {string[]} names
 * @returns {Polygon[]}
 */
function polygonsOf({ id, geometry }, names) {
  const block = typeof id === "number" ? id : names.indexOf(id);
  const { type, coordinates } = geometry ?? {};
  const several = { Polygon: [coordinates], MultiPolygon: coordinates }[String(type)] ?? [];
  return several.map((/** @type {Point[][]} */ rings) => ({ block, rings }));
}

/** @param {Polygon[]} polygons @returns {Places} */
function placesIn(polygons) {
  let [west, south, east, north] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const [longitude, latitude] of polygons.flatMap(({ rings }) => rings.flat())) {
    [west, east] = [Math.min(west, longitude), Math.max(east, longitude)];
    [south, north] = [Math.min(south, latitude), Math.max(north, latitude)];
  }
  if (!(west < east && south < north)) [west, south, east, north] = [0, 0, 1, 1];
  // A degree of longitude is shorter than one of latitude, by this factor in the middle.
  const shorter = Math.cos((((south + north) / 2) * Math.PI) / 180);
  const across = (east - west) * shorter;
  const each = Math.max(across, north - south) / LONGER_SIDE;
  const rows = Math.max(1, Math.round((north - south) / each));
  const columns = Math.max(1, Math.round(across / each));
  const block = new Int32Array(rows * columns).fill(OUTSIDE);
  const pen = /** @type {CanvasRenderingContext2D} */ (
    document.createElement("canvas").getContext("2d")
  );
  for (const { block: own, rings } of polygons) {
    const path = new Path2D();
    const ends = [columns, rows, 0, 0];
    for (const ring of rings) {
      ring.forEach(([longitude, latitude], at) => {
        const x = ((longitude - west) / (east - west)) * columns;
        const y = ((north - latitude) / (north - south)) * rows;
        if (at) path.lineTo(x, y);
        else path.moveTo(x, y);
        [ends[0], ends[1]] = [Math.min(ends[0], x), Math.min(ends[1], y)];
        [ends[2], ends[3]] = [Math.max(ends[2], x), Math.max(ends[3], y)];
      });
      path.closePath();
    }
    const [left, top, right, bottom] = ends.map(Math.floor);
    for (let row = top; row <= Math.min(bottom, rows - 1); row += 1) {
      for (let column = left; column <= Math.min(right, columns - 1); column += 1) {
        const inside = pen.isPointInPath(path, column + 0.5, row + 0.5, "evenodd");
        if (inside) block[row * columns + column] = own;
      }
    }
  }
  /** @param {number} axis @param {number} place */
  const label = (axis, place) => {
    const at = axis
      ? west + (place / columns) * (east - west)
      : north - (place / rows) * (north - south);
    return Number(at.toPrecision(5));
  };
  return { block, shape: [rows, columns], label };
}
