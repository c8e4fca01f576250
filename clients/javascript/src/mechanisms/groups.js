// Sensitive values hidden among the reports of their group, which are values, points or subsets; the
// others mostly in the clear.

import { bernoulliEach, uniformBelow } from "../entropy.js";
import { Geometry } from "./geometry.js";
import { readSensitive } from "./high_low.js";
import { drawSubsets } from "./subset_selection.js";
import { bytesOf, littleEndian, symbols } from "./symbols.js";

export async function groups(parameters, size, tables) {
  const sensitive = await readSensitive(parameters, size, tables);
  const count = sensitive.length;
  const threshold = BigInt(parameters.threshold);
  const places = new Array(size).fill(0);
  const groupOf = new Array(size).fill(-1);
  sensitive.forEach((value, place) => {
    places[value] = place;
    groupOf[value] = 0;
  });
  let next = 0;
  groupOf.forEach((group, value) => {
    if (group < 0) groupOf[value] = next += 1;
  });
  const ownOf = (values, entropy) =>
    bernoulliEach(entropy, values.map(() => threshold));
  if (parameters.chosen > 1) return subsetReports();

  const space = parameters.q === undefined ? null : new Geometry(parameters.q, parameters.dimension);
  const order = space === null ? count : space.points;
  return symbols(order + next, (values, entropy) => {
    const own = ownOf(values, entropy);
    const reports = values.map((value) => (groupOf[value] > 0 ? order + groupOf[value] - 1 : places[value]));
    if (space !== null) {
      const here = values.flatMap((_, i) => (own[i] ? [i] : []));
      uniformBelow(entropy, space.inside, here.length).forEach((lower, at) => {
        const value = values[here[at]];
        if (groupOf[value] === 0) reports[here[at]] = space.complete(places[value], lower);
      });
    }
    const others = values.flatMap((_, i) => (own[i] ? [] : [i]));
    uniformBelow(entropy, order, others.length).forEach((drawn, at) => {
      reports[others[at]] = drawn;
    });
    return reports;
  });

  function subsetReports() {
    const groupBytes = bytesOf(next);
    const reportBytes = groupBytes + Math.ceil(count / 8);
    return {
      reportBytes,
      numbers: false,
      privatize(values, entropy) {
        const own = ownOf(values, entropy);
        const rows = values.map((value, i) => ({
          report: new Uint8Array(reportBytes),
          place: own[i] ? places[value] : -1,
          wanted: own[i],
        }));
        drawSubsets(entropy, count, parameters.chosen, rows, groupBytes);
        return rows.map(({ report }, i) => {
          const group = own[i] ? groupOf[values[i]] : 0;
          if (group === 0) return report;
          const plain = new Uint8Array(reportBytes);
          plain.set(littleEndian(group, groupBytes));
          plain[groupBytes] = 1;
          return plain;
        });
      },
    };
  }
}
