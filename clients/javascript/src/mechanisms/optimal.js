// A channel out of a table: one word decides between the reports that a value can have.

import { SpecError } from "../errors.js";
import { sha256OfText } from "../hash.js";
import { symbols } from "./symbols.js";

const WORD = 1n << 64n;

export async function optimal(parameters, size, tables) {
  const text = tables.channel;
  if (typeof text !== "string" || (await sha256OfText(text)) !== parameters.channel.sha256) {
    throw new SpecError("tables.channel", "the channel whose SHA-256 the spec holds; one of more than 1 MiB is in no document");
  }
  const { policy, weights } = JSON.parse(text);
  const rows = weights.map((row) => intervals(row.map(BigInt)));
  if (rows.length !== size) throw new SpecError("tables.channel", `a row for each of ${size} values`);
  const drawn = symbols(parameters.outputs, (values, entropy) => {
    const words = entropy.words(values.length);
    return values.map((value, i) => {
      const { reports, ends } = rows[value];
      return reports[firstAbove(ends, words[i])];
    });
  });
  return { ...drawn, known: { policy } };
}

// The possible reports of a value, and where all their intervals of the 2^64 words but the last end.
function intervals(weights) {
  const reports = [];
  const ends = [];
  let end = 0n;
  weights.forEach((weight, report) => {
    if (weight === 0n) return;
    reports.push(report);
    end += weight;
    ends.push(end);
  });
  if (end !== WORD) throw new SpecError("tables.channel", "rows with the sum 2^64");
  ends.pop();
  return { reports, ends };
}

function firstAbove(ends, word) {
  let [low, high] = [0, ends.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[middle] > word) high = middle;
    else low = middle + 1;
  }
  return low;
}
