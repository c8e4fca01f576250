// One noisy bit a position on ordered values: a bit is flipped with probability 1 - T / 2^64.

const CHUNK_BYTES = 2 ** 22; // reports drawn together: which words a bit uses depends on it
const ALL = (1n << 64n) - 1n;

export function l1Bits(parameters) {
  const threshold = BigInt(parameters.threshold);
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
      const kept = keptBits(entropy, threshold, part.length * reportBytes);
      part.forEach((report, i) => {
        reports.push(report.map((byte, j) => byte ^ (~kept[i * reportBytes + j] & used[j])));
      });
    }
    return reports;
  }

  return { reportBytes, numbers: false, privatize };
}

// Bit j of coordinate x is 1 if j >= x; one dimension after the other.
function plainBits(value, extents, reportBytes) {
  const report = new Uint8Array(reportBytes);
  let end = extents.reduce((sum, extent) => sum + extent - 1, 0);
  let rest = value;
  for (let axis = extents.length - 1; axis >= 0; axis -= 1) {
    const start = end - (extents[axis] - 1);
    const x = rest % extents[axis];
    rest = Math.floor(rest / extents[axis]);
    for (let i = start + x; i < end; i += 1) report[i >> 3] |= 1 << (i & 7);
    end = start;
  }
  return report;
}

// n bytes of bits that are 1 with probability T / 2^64 each: 64 at a time they are compared with the
// digits of T from the highest on; groups of which a bit is undecided draw a word a digit.
function keptBits(entropy, threshold, n) {
  const count = Math.ceil(n / 8);
  const ones = new BigUint64Array(count);
  const undecided = new BigUint64Array(count).fill(ALL);
  let active = Array.from({ length: count }, (_, i) => i);
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
  const bytes = new Uint8Array(8 * count);
  const view = new DataView(bytes.buffer);
  ones.forEach((word, i) => view.setBigUint64(8 * i, word, true));
  return bytes;
}
