// One noisy bit for each position of an ordered domain, flipped with probability 1 - T / 2^64.

import { readKeep } from "../chains.js";
import { split } from "../domain.js";
import { SpecError } from "../errors.js";

const CHUNK_BYTES = 2 ** 22; // reports drawn together, which decides which words a bit uses
const ALL = (1n << 64n) - 1n;

export function l1Bits(parameters) {
  const kept = { numerator: BigInt(parameters.threshold), denominator: 1n << 64n };
  const extents = parameters.shape.filter((extent) => extent > 1);
  const bits = extents.reduce((sum, extent) => sum + extent - 1, 0);
  const reportBytes = Math.ceil(bits / 8);
  const used = new Uint8Array(reportBytes);
  for (let i = 0; i < bits; i += 1) used[i >> 3] |= 1 << (i & 7);

  function privatize(values, entropy) {
    const reports = [];
    const step = Math.max(1, Math.floor(CHUNK_BYTES / reportBytes));
    for (let start = 0; start < values.length; start += step) {
      const part = values.slice(start, start + step).map((value) => plainBits(value, extents, reportBytes));
      for (const report of flip(part, kept, entropy)) reports.push(report);
    }
    return reports;
  }

  // Each used bit stays with this probability.
  function flip(rows, probability, entropy) {
    const stays = keptBits(entropy, probability, rows.length * reportBytes);
    return rows.map((row, i) => row.map((byte, j) => byte ^ (~stays[i * reportBytes + j] & used[j])));
  }

  function sender(keep) {
    if (keep.length !== 1) throw new SpecError("hold.keep", "one probability");
    const stay = readKeep(keep[0]);
    return (report, entropy) => flip([report], stay, entropy)[0];
  }

  return { reportBytes, numbers: false, privatize, chain: { form: JSON.stringify(extents), sender } };
}

// Bit j of coordinate x is 1 if j >= x; one dimension after the other.
function plainBits(value, extents, reportBytes) {
  const report = new Uint8Array(reportBytes);
  let start = 0;
  split(value, extents).forEach((x, axis) => {
    const end = start + extents[axis] - 1;
    for (let i = start + x; i < end; i += 1) report[i >> 3] |= 1 << (i & 7);
    start = end;
  });
  return report;
}

// n bytes of independent bits, each 1 with a probability below 1. Groups of 64 bits are compared with
// its binary digits from the highest on, until these end after a multiple of 64; a group draws a word
// for each digit while one of its bits is undecided.
function keptBits(entropy, { numerator, denominator }, n) {
  const count = Math.ceil(n / 8);
  const ones = new BigUint64Array(count);
  const undecided = new BigUint64Array(count).fill(ALL);
  let active = Array.from({ length: count }, (_, i) => i);
  for (let rest = numerator; rest > 0n && active.length > 0; rest = (rest << 64n) % denominator) {
    const threshold = (rest << 64n) / denominator;
    for (let place = 63n; place >= 0n && active.length > 0; place -= 1n) {
      const words = entropy.words(active.length);
      active = active.filter((group, at) => {
        const [digits, still] = [words[at], undecided[group]];
        if ((threshold >> place) & 1n) {
          ones[group] |= still & ~digits & ALL;
          undecided[group] = still & digits;
        } else {
          undecided[group] = still & ~digits & ALL;
        }
        return undecided[group] !== 0n;
      });
    }
  }
  const bytes = new Uint8Array(8 * count);
  const view = new DataView(bytes.buffer);
  ones.forEach((word, i) => view.setBigUint64(8 * i, word, true));
  return bytes;
}
