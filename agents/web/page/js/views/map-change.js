// The map of what changed between two spans: every block, or part of a map without blocks, in a colour
// for more or for less, and hatched where no difference is shown.

import { divergingColour } from "../colours.js";
import { decimalsFor, pointsText } from "../format.js";
import { colour } from "../theme.js";
import { changeCell, changedText, changesIn, partsOf } from "./changes.js";

/**
 * What a picture of the change shows, and what is said of it.
 *
 * @param {Collection} collection
 * @param {ChangeAnswer} answer
 * @param {AreaEntry[]} known Areas of shares: those of blocks have the places of each.
 * @returns {Painted & {said: string}}
 */
export function changePicture(collection, answer, known) {
  const all = new Map(changesIn(answer, collection).map((told) => [told.key, told]));
  /** @type {AreaEntry[]} */
  const areas = collection.domain.blocks
    ? known
        .filter(({ inside }) => inside === null)
        .map((area) => ({ ...area, rest: null, name: all.get(area.block ?? 0)?.name ?? area.name }))
    : partsOf(collection.domain).map(({ text, box }) => ({
        ...{ ...known[0], name: text, box, block: null, inside: null, rest: null },
        values: box.reduce((size, [first, last]) => size * (last - first + 1), 1),
      }));
  /** @param {AreaEntry} area @returns {Told | undefined} */
  const toldOf = ({ block, name }) => all.get(block ?? name);
  const shown = areas.flatMap((area) => toldOf(area) ?? []);
  const told = shown.flatMap(({ change }) => (change.told ? [change] : []));
  const most = Math.max(0, ...told.map(({ value }) => Math.abs(value))) || 0.01;
  const decimals = decimalsFor(told);
  const inks = { less: "mark", ground: "card", more: "accent" };
  /** @param {number} part */
  const shade = (part) => divergingColour(part, inks, colour);
  return {
    areas,
    paint: () => (area) => {
      const change = toldOf(area)?.change;
      return shade(change?.told ? change.value / most : 0);
    },
    hatched: (area) => !toldOf(area)?.change.told,
    written: (area) => {
      const change = toldOf(area)?.change;
      return change?.told ? pointsText(change.value, decimals) : "";
    },
    legend: {
      title: "change of an area's share, in points",
      unsure: "no difference shown",
      paint: () => (at) => shade(2 * at - 1),
      ticks: [-most, 0, most].map((one) => pointsText(one, decimals)),
    },
    rows: (area) => {
      const one = toldOf(area);
      if (!one) return [];
      return [
        { name: "change", value: changeCell(one.change, one.textOf, one.unit) },
        { name: "before", value: one.was },
        { name: "now", value: one.now },
      ];
    },
    said: changedText(answer, shown),
  };
}
