// Subset selection inside blocks: d values of the block, which include the own one with T / 2^64.

import { bySize, readBlocks, thresholdsOf } from "../blocks.js";
import { readKeeps } from "../chains.js";
import { bernoulliEach, bernoulliRational } from "../entropy.js";
import { bytesOf, littleEndian, numberOf } from "./symbols.js";

const BATCH = 2 ** 20; // keys drawn together, which decides which words a value uses
const LARGEST_KEY = 2 ** 32 - 1;

export async function subsetSelection(parameters, size, tables) {
  const blocks = await readBlocks(size, parameters.blocks, tables.blocks);
  const subsets = bySize(parameters.subsets);
  const thresholds = thresholdsOf(blocks, subsets);
  const blockBytes = bytesOf(blocks.sizes.length - 1);
  const maskBytes = Math.ceil(blocks.sizes.reduce((a, b) => Math.max(a, b), 0) / 8);
  const reportBytes = blockBytes + maskBytes;

  function privatize(values, entropy) {
    const of = values.map((value) => blocks.ofValue[value]);
    const wanted = bernoulliEach(
      entropy,
      of.map((block) => thresholds[block]),
    );
    const reports = of.map((block) => {
      const report = new Uint8Array(reportBytes);
      report.set(littleEndian(block, blockBytes));
      if (blocks.sizes[block] === 1) report[blockBytes] = 1;
      return report;
    });
    for (const count of [...subsets.keys()].sort((a, b) => a - b)) {
      const rows = of.flatMap((block, i) =>
        blocks.sizes[block] === count
          ? [{ report: reports[i], place: blocks.place[values[i]], wanted: wanted[i] }]
          : [],
      );
      drawSubsets(entropy, count, subsets.get(count).chosen, rows, blockBytes);
    }
    return reports;
  }

  // A subset stays, or becomes a uniform one of its block, which holds the first value with d / k.
  function sender(keep) {
    const kept = readKeeps(keep, [...subsets.keys()]);
    return (report, entropy) => {
      const block = numberOf(report.slice(0, blockBytes));
      const count = blocks.sizes[block];
      if (count === 1) return report;
      const { chosen } = subsets.get(count);
      const stays = bernoulliRational(entropy, kept.get(count));
      const share = { numerator: BigInt(chosen), denominator: BigInt(count) };
      const row = { report: new Uint8Array(reportBytes), place: 0, wanted: bernoulliRational(entropy, share) };
      row.report.set(littleEndian(block, blockBytes));
      drawSubsets(entropy, count, chosen, [row], blockBytes);
      return stays ? report : row.report;
    };
  }

  const chosen = [...subsets].map(([count, one]) => [count, one.chosen]);
  const form = JSON.stringify([parameters.blocks, chosen]);
  return { reportBytes, numbers: false, privatize, chain: { form, sender } };
}

// Place -1 stands for a uniform subset.
export function drawSubsets(entropy, count, chosen, rows, blockBytes) {
  const step = Math.max(1, Math.floor(BATCH / count));
  for (let first = 0; first < rows.length; first += step) {
    let open = rows.slice(first, first + step);
    while (open.length > 0) {
      const keys = drawKeys(entropy, open.length * count);
      open = open.filter((row, at) => {
        const own = keys.subarray(at * count, (at + 1) * count);
        if (row.place >= 0) own[row.place] = row.wanted ? 0 : LARGEST_KEY;
        const last = Uint32Array.from(own).sort()[chosen - 1];
        const taken = [];
        own.forEach((key, place) => {
          if (key <= last) taken.push(place);
        });
        if (taken.length > chosen) return true; // keys tie, so that all of this row are drawn again
        for (const place of taken) row.report[blockBytes + (place >> 3)] |= 1 << (place & 7);
        return false;
      });
    }
  }
}

// n keys of 32 bits, the lower half of a word before the upper one; a half may be left over.
function drawKeys(entropy, n) {
  const words = entropy.words(Math.ceil(n / 2));
  const keys = new Uint32Array(n);
  for (let i = 0; i < n; i += 1) {
    const word = words[i >> 1];
    keys[i] = Number(i % 2 === 0 ? word & 0xffffffffn : word >> 32n);
  }
  return keys;
}
