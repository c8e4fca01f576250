// A weight for each value, sent in the clear: value x with weight w has the number (N + 1) x + w.

import { bytesOf, littleEndian } from "./symbols.js";

export function publicWeights(own, largest) {
  const weightBytes = bytesOf(largest);
  return {
    reportBytes: own.reportBytes + weightBytes,
    numbers: false,
    privatize(values, entropy) {
      const randomised = own.privatize(
        values.map((value) => Math.floor(value / (largest + 1))),
        entropy,
      );
      return randomised.map((report, i) =>
        Uint8Array.from([...report, ...littleEndian(values[i] % (largest + 1), weightBytes)]),
      );
    },
  };
}
