// The area that each place of a map is in, and the areas of a window in one sentence.

import { ask, collectionPath } from "../api.js";
import { countText } from "../format.js";

/** @type {Map<string, Int32Array>} For collections whose blocks are not boxes, by fingerprint. */
const tables = new Map();

/** @param {AreaEntry} area */
function isBox({ box, values }) {
  return (
    box !== null && box.reduce((size, [first, last]) => size * (last - first + 1), 1) === values
  );
}

/**
 * @param {Collection} collection
 * @returns {Promise<Int32Array>} The block of each place, from the devices' tables.
 */
async function tableOf({ name, fingerprint, values, attribute = "" }) {
  const key = `${fingerprint} ${attribute}`;
  const known = tables.get(key);
  if (known) return known;
  const { tables: whole } = await ask(`${collectionPath(name)}/spec`);
  const of = attribute ? (whole.attributes?.[attribute] ?? {}) : whole;
  const table = new Int32Array(values);
  let at = 0;
  for (const [block, length] of of.blocks ?? []) table.fill(block, at, (at += length));
  tables.set(key, table);
  return table;
}

/**
 * @param {Collection} collection
 * @param {AreaEntry[]} areas
 * @returns {Promise<{owner: Int32Array, block: Int32Array}>} The innermost area of each place, and
 *   its block.
 */
export async function placesOf(collection, areas) {
  const [, columns] = collection.domain.shape;
  const roots = areas.filter(({ inside }) => inside === null);
  const boxes = roots.every(isBox);
  const block = boxes ? new Int32Array(collection.values) : await tableOf(collection);
  const owner = new Int32Array(collection.values);
  areas.forEach(({ box, block: mine, inside }, place) => {
    const [[top, bottom], [left, right]] = /** @type {number[][]} */ (box);
    for (let row = top; row <= bottom; row += 1) {
      for (let at = row * columns + left; at <= row * columns + right; at += 1) {
        if (boxes && inside === null) block[at] = mine ?? 0;
        if (block[at] === (mine ?? 0)) owner[at] = place;
      }
    }
  });
  return { owner, block };
}

/**
 * @param {Int32Array} block Of each place; below 0 where there is none.
 * @param {AreaEntry[]} areas Blocks.
 */
export function ownersOf(block, areas) {
  const places = new Map(areas.map((area, place) => [area.block ?? 0, place]));
  return block.map((own) => places.get(own) ?? -1);
}

/**
 * The ratio of an area's share to its even share of its block, outside of the areas in it.
 *
 * @param {AreaEntry[]} areas
 * @param {number} place
 * @returns {number | null}
 */
export function timesEven(areas, place) {
  let root = areas[place];
  while (root.inside !== null) root = areas[root.inside];
  const mine = areas[place].rest ?? areas[place];
  if (mine.share === null || !mine.values || !root.share) return null;
  return mine.share / mine.values / (root.share / root.values);
}

/** @param {number} number @param {string} one @param {string} more */
const many = (number, one, more) => `${countText(number)} ${number === 1 ? one : more}`;

/** @param {AreaEntry[]} areas */
export function sentenceOf(areas) {
  const roots = areas.filter(({ inside }) => inside === null);
  const named = areas.length - roots.length;
  const divided = new Set(areas.filter(({ inside }) => inside !== null).map(({ block }) => block));
  if (roots.length === 1) {
    return named
      ? `${many(named, "area stands", "areas stand")} out from the surroundings.`
      : "No area stands out from an even share of the whole.";
  }
  const inside = named
    ? `inside ${countText(divided.size)} of them, ${many(named, "area stands", "areas stand")} out.`
    : "inside them no area stands out from its even share.";
  const exact = roots.every(({ bound, share }) => bound === "known" || share === null);
  if (!exact) return `${many(roots.length, "block", "blocks")} with bounds; ${inside}`;
  let sum = 0;
  const largest = roots.map(({ share }) => share ?? 0).sort((a, b) => b - a);
  const number = largest.findIndex((share) => (sum += share) >= 0.5) + 1;
  return `Half of all reports come from ${countText(number)} of ${countText(roots.length)} blocks; ${inside}`;
}
