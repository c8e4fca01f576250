// Linear counting: the noisy rows of a strategy, and the group that exact rows disclose.

import { SpecError } from "../errors.js";
import { joinedValues } from "./protected.js";
import { readStrategy } from "./strategy.js";
import { bytesOf, littleEndian } from "./symbols.js";
import { TwoSided } from "./two_sided.js";

const CELLS = 2 ** 20; // numbers drawn together, which decides which words a value uses

export async function matrix(parameters, size, tables) {
  const entries = await readStrategy(parameters.strategy, size, tables.strategy);
  const joined = await joinedValues(parameters.policy, size, tables);
  const { rows, group } = realise(entries, joined, parameters);
  const noise = new TwoSided(
    parameters.thresholds.map(BigInt),
    rows.reduce((most, row) => Math.max(most, row.span + 1), 0),
  );
  const groupBytes = parameters.groups > 1 ? bytesOf(parameters.groups - 1) : 0;
  const lengths = rows.map(({ span }) => Math.max(1, bytesOf(span)));
  const reportBytes = lengths.reduce((sum, length) => sum + length, groupBytes);

  function privatize(values, entropy) {
    const step = Math.max(1, Math.floor(CELLS / rows.length));
    const reports = [];
    for (let start = 0; start < values.length; start += step) {
      const part = values.slice(start, start + step);
      const moved = noise.move(
        entropy,
        part.flatMap((value) => rows.map((row) => row.entries[value] - row.low)),
        part.flatMap(() => rows.map((row) => row.span)),
        part.flatMap(() => rows.map((row) => row.kind)),
      );
      part.forEach((value, i) => {
        const report = new Uint8Array(reportBytes);
        report.set(littleEndian(group[value], groupBytes));
        let at = groupBytes;
        lengths.forEach((length, j) => {
          report.set(littleEndian(moved[i * rows.length + j], length), at);
          at += length;
        });
        reports.push(report);
      });
    }
    return reports;
  }

  const known = { rows, joined, thresholds: parameters.thresholds.map(BigInt) };
  return { reportBytes, numbers: false, privatize, known };
}

// The noisy rows with their ranges, and the group of each value by the exact rows.
function realise(entries, joined, { scales, thresholds, reaches, groups }) {
  const isExact = (row, j) =>
    scales === undefined ? row.every((entry, x) => entry === row[joined[x]]) : scales[j] === 0;
  const exact = entries.filter(isExact);
  const noisy = entries.flatMap((row, j) =>
    !isExact(row, j) && row.some((entry) => entry !== row[0]) ? [{ entries: row, scale: scales?.[j] }] : [],
  );
  const kinds = [...new Set(noisy.map(({ scale }) => scale))].sort((a, b) => a - b);
  const group = groupsOf(exact, joined.length);
  const found = 1 + group.reduce((a, b) => Math.max(a, b), 0);
  if (kinds.length !== thresholds.length || kinds.length !== reaches.length || found !== groups) {
    throw new SpecError("parameters", "as many kinds of noise, and groups, as the strategy has");
  }
  const rows = noisy.map((row) => {
    const kind = kinds.indexOf(row.scale);
    const [low, high] = row.entries.reduce(([a, b], x) => [Math.min(a, x), Math.max(b, x)], [Infinity, -Infinity]);
    return { entries: row.entries, kind, low: low - reaches[kind], span: high - low + 2 * reaches[kind] };
  });
  return { rows, group };
}

// The number of each value's column of the exact rows, in the lexicographic order of columns.
function groupsOf(exact, size) {
  const columns = Array.from({ length: size }, (_, x) => exact.map((row) => row[x]));
  const compare = (a, b) => a.reduce((order, entry, j) => order || entry - b[j], 0);
  const ordered = [...columns].sort(compare).filter((c, i, all) => i === 0 || compare(c, all[i - 1]));
  const numbers = new Map(ordered.map((column, number) => [column.join(), number]));
  return columns.map((column) => numbers.get(column.join()));
}
