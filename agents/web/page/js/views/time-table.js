// The numbers of lines over time as text, and all of them in a table.

import { element, say } from "../dom.js";
import { countText, decimalsFor, meanText, percentText, spanText, zoneOf } from "../format.js";
import { fillTable, number } from "../table.js";

/**
 * Returns what writes the number of a point and its bounds.
 *
 * @param {Series} series
 */
export function writer({ share, points }) {
  const decimals = decimalsFor(points);
  /** @param {Point} point */
  return ({ middle, low, high, texts }) => {
    if (texts.length) return texts;
    return [middle, low, high].map((value) =>
      share ? percentText(value, decimals) : meanText(value, { low, high }),
    );
  };
}

/**
 * The numbers of the chart, newest first.
 *
 * @param {{collection: Collection, spots: Spot[], series: Series[]}} drawn
 */
export function fillWindows({ collection, spots, series }) {
  const written = series.map((one) => one.points.map(writer(one)));
  say(element("windows-title"), `Table of these ${countText(spots.length)} windows`);
  fillTable(
    "window-rows",
    [
      { title: `window (${zoneOf(collection.window.timezone)})`, kind: "name" },
      { title: "state" },
      { title: "reports" },
      { title: "late" },
      ...series.flatMap(({ title }) => [
        { title },
        { title: `${title}, low` },
        { title: `${title}, high` },
      ]),
    ],
    spots
      .map(({ window, final, n, late }, at) => [
        spanText(window),
        final ? "final" : "provisional",
        number(countText(n), n),
        number(countText(late), late),
        ...series.flatMap(({ points }, place) => {
          const { middle, low, high, texts } = points[at];
          return written[place][at].map((text, part) =>
            texts.length ? text : number(text, [middle, low, high][part]),
          );
        }),
      ])
      .reverse(),
  );
}
