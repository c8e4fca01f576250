// Frames: messages with one or more reports (docs/wire.md).

const VERSION = 1;
const FINGERPRINT_BYTES = 8;
const HEAD_BYTES = 4 + FINGERPRINT_BYTES;
const RUN_BYTES = 12;
const MAX_RUNS = 0xffff;
const EARLIEST_MS = -62135596800000;
const LATEST_MS = 253402300799999;

// Rounds toward the past, also before 1970.
export function cutTime(timeMs, precisionMs) {
  if (!Number.isInteger(timeMs) || timeMs < EARLIEST_MS || timeMs > LATEST_MS) {
    throw new RangeError("time: expected whole milliseconds since the epoch, of the years 1 to 9999");
  }
  const over = timeMs % precisionMs;
  return timeMs - (over < 0 ? over + precisionMs : over);
}

// `entries` are `{timeMs, report}` with cut times and reports of one length. They are sorted by time
// and then by report, because their original order would reveal the order of the events. `numbers`
// says that reports are little-endian numbers; others are sorted by their bytes. If there are tokens,
// one for each report, entries are sorted by token, and a token follows its report.
export function encodeFrame(fingerprint, entries, { numbers }) {
  if (entries.length === 0) throw new RangeError("expected at least one report");
  const compare = numbers ? compareNumbers : compareBytes;
  const within =
    entries[0].token === undefined
      ? (a, b) => compare(a.report, b.report)
      : (a, b) => compareBytes(a.token, b.token);
  const sorted = [...entries].sort((a, b) => a.timeMs - b.timeMs || within(a, b));
  const runs = [];
  for (const { timeMs } of sorted) {
    const last = runs[runs.length - 1];
    if (last !== undefined && last.timeMs === timeMs) last.count += 1;
    else runs.push({ timeMs, count: 1 });
  }
  if (runs.length > MAX_RUNS) throw new RangeError(`a frame holds at most ${MAX_RUNS} times`);
  const bytes = sorted[0].report.length;
  const length = bytes + (sorted[0].token?.length ?? 0);
  const start = HEAD_BYTES + RUN_BYTES * runs.length;
  const frame = new Uint8Array(start + length * sorted.length);
  const view = new DataView(frame.buffer);
  view.setUint8(0, VERSION);
  view.setUint16(2, runs.length, true);
  frame.set(fingerprint, 4);
  runs.forEach(({ timeMs, count }, i) => {
    view.setBigInt64(HEAD_BYTES + RUN_BYTES * i, BigInt(timeMs), true);
    view.setUint32(HEAD_BYTES + RUN_BYTES * i + 8, count, true);
  });
  sorted.forEach(({ report, token = [] }, i) => {
    frame.set(report, start + length * i);
    frame.set(token, start + length * i + bytes);
  });
  return frame;
}

function compareNumbers(a, b) {
  for (let i = a.length - 1; i >= 0; i -= 1) if (a[i] !== b[i]) return a[i] - b[i];
  return 0;
}

function compareBytes(a, b) {
  for (let i = 0; i < a.length; i += 1) if (a[i] !== b[i]) return a[i] - b[i];
  return 0;
}
