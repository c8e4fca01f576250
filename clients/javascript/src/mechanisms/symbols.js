// Reports that are numbers: little-endian in the fewest whole bytes that hold all outputs.

import { bitLength } from "../entropy.js";
import { SpecError } from "../errors.js";

const LARGEST = 2 ** 53;

// `draw(values, entropy)` returns a number in 0..outputs-1 for each value. `chain`, if there is one, is
// from ../chains.js.
export function symbols(outputs, draw, chain) {
  if (!(outputs <= LARGEST)) throw new SpecError("parameters", "at most 2^53 different reports");
  const reportBytes = Math.max(1, bytesOf(outputs - 1));
  return {
    reportBytes,
    numbers: true,
    chain: chain && {
      form: chain.form,
      sender(keep, permanent) {
        const again = chain.again(keep, permanent);
        return (report, entropy) => littleEndian(again(numberOf(report), entropy), reportBytes);
      },
    },
    privatize: (values, entropy) =>
      draw(values, entropy).map((number) => littleEndian(number, reportBytes)),
  };
}

export function bytesOf(largest) {
  return Math.ceil(bitLength(largest) / 8);
}

export function numberOf(report) {
  return report.reduceRight((number, byte) => number * 256 + byte, 0);
}

export function littleEndian(number, bytes) {
  const out = new Uint8Array(bytes);
  let rest = number;
  for (let i = 0; i < bytes; i += 1) {
    out[i] = rest % 256;
    rest = Math.floor(rest / 256);
  }
  return out;
}
