// Areas of a line, which are merged bins, or of labels: what stands out, and the rest of it all.

import { boundedCells, boundedColumns, scaleOf, scaleTicks } from "../bars.js";
import { areaText, countText, decimalsFor, percentText } from "../format.js";
import { fillTable, number } from "../table.js";

/** @param {AreaEntry[]} areas Returns what they say first. */
export function mergedText(areas) {
  const named = areas.filter(({ inside }) => inside !== null);
  const [first] = [...named].sort((a, b) => (b.share ?? 0) - (a.share ?? 0));
  return standingText(named.length, first ?? null);
}

/** @param {number} named How many areas stand out. @param {AreaEntry | null} first The largest. */
export function standingText(named, first) {
  if (!first) return "No area stands out from an even share of the whole.";
  const decimals = decimalsFor([first]);
  const [share, low, high] = [first.share, first.low, first.high].map((one) =>
    percentText(one, decimals),
  );
  const count = named === 1 ? "One area stands" : `${countText(named)} areas stand`;
  return `${count} out: ${areaText(first)} has ${share} (${low} to ${high}).`;
}

/**
 * Fill a table with areas, each with what is not named in it again as the rest of it.
 *
 * @param {string} id
 * @param {AreaEntry[]} areas
 * @param {boolean} final
 */
export function fillMerged(id, areas, final) {
  const rows = areas.flatMap((area) => {
    const name = areaText(area);
    const { rest, forged } = area;
    const own = { ...area, name, forged };
    if (!rest?.values) return [own];
    const left = { ...rest, name: `the rest of ${name}`, forged: null };
    return area.inside === null && area.block === null ? [left] : [own, left];
  });
  const decimals = decimalsFor(rows);
  const scale = scaleOf(rows);
  /** @param {number | null} share */
  const percent = (share) => percentText(share, decimals);
  fillTable(
    id,
    [
      { title: "area", kind: "name" },
      ...boundedColumns("share", scaleTicks(scale, "%")),
      { title: "values" },
      { title: "forgeries needed", kind: "more" },
    ],
    rows.map((one) => [
      one.name,
      ...boundedCells(one, percent, scale, final),
      number(countText(one.values), one.values),
      one.forged === null ? "–" : number(countText(one.forged), one.forged),
    ]),
  );
}
