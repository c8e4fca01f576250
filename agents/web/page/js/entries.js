// Tables of numbers with bounds: shares of values and ranges, means, and quantiles.

import {
  boundedCells,
  boundedColumns,
  difference,
  scaleAround,
  scaleOf,
  scaleTicks,
} from "./bars.js";
import {
  countText,
  decimalsFor,
  labelText,
  meanText,
  partText,
  percentText,
  pointsText,
} from "./format.js";
import { changeCell } from "./views/changes.js";
import { fillTable, number } from "./table.js";

/** @typedef {import("./table.js").Column} Column */
/** @typedef {import("./table.js").Content} Content */

/**
 * Fill a table with shares, and with sums of weights if devices report any.
 *
 * @param {string} id
 * @param {string} what The title of the names.
 * @param {{name: string, entry: Entry}[]} rows
 * @param {boolean} final
 * @param {Map<string, Change & {was?: Entry}> | null} [changes] Since another window.
 * @param {(name: string) => Content} [nameOf] What stands for a name.
 */
export function fillEntries(id, what, rows, final, changes = null, nameOf = (name) => name) {
  const entries = rows.map(({ entry }) => entry);
  const decimals = decimalsFor(entries);
  const judged = rows.flatMap(({ name }) => changes?.get(name) ?? []);
  const before = judged.flatMap(({ was }) => (was ? [was] : []));
  const scale = scaleOf([...entries, ...before]);
  const weighed = entries.some(({ weight }) => weight);
  /** @type {Column[]} */
  const columns = [
    { title: what, kind: "name" },
    ...boundedColumns("share", scaleTicks(scale, "%")),
    { title: "count", kind: "more" },
  ];
  if (what === "value") [columns[0].sort, columns[1].sort] = ["value", "share"];
  const around = scaleAround(judged);
  if (changes) {
    const ticks = scaleTicks(around, "", true);
    columns.splice(
      5,
      0,
      { title: "in points", kind: "difference", ticks },
      { title: "change", kind: "change", sort: what === "value" ? "change" : undefined },
    );
  }
  if (weighed) columns.push({ title: "weight" }, { title: "its low" }, { title: "its high" });
  /** @param {number | null} share */
  const percent = (share) => percentText(share, decimals);
  fillTable(
    id,
    columns,
    rows.map(({ name, entry }) => {
      /** @type {Content[]} */
      const cells = [
        nameOf(name),
        ...boundedCells(entry, percent, scale, final, changes?.get(name)?.was),
        number(countText(entry.count), entry.count),
      ];
      if (changes)
        cells.splice(
          5,
          0,
          difference(changes.get(name), around),
          changeCell(changes.get(name), (value) => pointsText(value, decimals)),
        );
      if (weighed) {
        const { total = null, low = null, high = null } = entry.weight ?? {};
        cells.push(...[total, low, high].map((one) => number(countText(one), one)));
      }
      return cells;
    }),
  );
}

/**
 * Fill a table with means, each with its own unit and scale.
 *
 * @param {string} id
 * @param {MeanEntry[]} means
 * @param {boolean} final
 */
export function fillMeans(id, means, final) {
  fillTable(
    id,
    [
      { title: "mean of", kind: "name" },
      ...boundedColumns("mean"),
      { title: "total", kind: "more" },
    ],
    means.map(({ name, mean, total, low, high }) => {
      const whisker = { share: mean, low, high };
      /** @param {number | null} value */
      const inUnit = (value) => meanText(value, whisker);
      return [
        name,
        ...boundedCells(whisker, inUnit, scaleOf([whisker]), final),
        number(countText(total), total),
      ];
    }),
  );
}

/**
 * Fill a table with quantiles.
 *
 * @param {string} id
 * @param {QuantileEntry[]} quantiles
 * @param {Domain} domain
 */
export function fillQuantiles(id, quantiles, domain) {
  fillTable(
    id,
    [
      { title: "share below", kind: "name" },
      { title: "value" },
      { title: "low" },
      { title: "high" },
    ],
    quantiles.map(({ p, value, low, high }) => [
      number(partText(p, 6), p),
      ...[value, low, high].map((label) => labelText(label, domain)),
    ]),
  );
}
