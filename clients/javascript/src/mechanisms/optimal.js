// A channel given by a table: one word decides among the reports that a value can produce.

import { mixtureChain } from "../chains.js";
import { chooseByWord } from "../entropy.js";
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
  const table = weights.map((row) => row.map(BigInt));
  if (table.length !== size) throw new SpecError("tables.channel", `a row for each of ${size} values`);
  const known = { policy };
  if (parameters.share !== undefined) return { ...permanent(table, parameters), known };
  const rows = table.map(intervals);
  const drawn = symbols(parameters.outputs, (values, entropy) => {
    const words = entropy.words(values.length);
    return values.map((value, i) => {
      const { reports, ends } = rows[value];
      return reports[firstAbove(ends, words[i])];
    });
  }, mixtureChain(parameters.channel.sha256, (_, drawing) => drawing.ends));
  return { ...drawn, known };
}

// The permanent draw of an epoch (docs/wire.md, "Hold"): the rows minus a share of their common part.
// `ends` are the ends of the parts of 0..1 that keep its report and that send 0, 1, ..
function permanent(table, { outputs, share, channel: { sha256 } }) {
  const taken = table[0].map((_, y) => {
    const least = table.reduce((least, row) => (row[y] < least ? row[y] : least), table[0][y]);
    return (least * BigInt(share)) >> 64n;
  });
  const left = WORD - taken.reduce((sum, weight) => sum + weight, 0n);
  if (left <= 0n || left >= WORD) throw new SpecError("hold.permanent", "a share above 0 and below 1");
  const rows = table.map((row) => endsOf(row.map((weight, y) => weight - taken[y]), left));
  const drawn = symbols(outputs, (values, entropy) => {
    const words = entropy.words(values.length);
    return values.map((value, i) => chooseByWord(entropy, rows[value], words[i]));
  }, mixtureChain(sha256));
  return { ...drawn, ends: endsOf([left, ...taken], WORD) };
}

// The ends of all parts of the whole but the last.
function endsOf(weights, denominator) {
  let end = 0n;
  return weights.slice(0, -1).map((weight) => {
    end += weight;
    return { numerator: end, denominator };
  });
}

// The possible reports of a value, and the ends of their intervals of the 2^64 words but the last.
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
