// A ledger that spreads its budget: the same windows as in every language, and never beyond it.

import assert from "node:assert/strict";
import test from "node:test";

import { BudgetError, Ledger, LedgerError, SkippedError, postOnce } from "../index.js";
import { isAbove, readRational } from "../src/rational.js";
import { sum, times } from "../src/loss.js";
import { drawnWindows, sharedOut } from "../src/spread.js";
import { DAY_MS, HOUR_MS, Memory, START_MS, content, label, ledgerOf, other, read, roads } from "./shared.js";

const VECTOR = read("spread.json");

const spreading = (storage, options = {}) =>
  ledgerOf(storage, { budget: 6, collections: [[roads, HOUR_MS]], spread: true, ...options });

async function taken(ledger, startMs, of = label) {
  const found = [];
  for (let hour = 0; hour < 24; hour += 1) {
    try {
      await ledger.release(roads, of, { timeMs: startMs + hour * HOUR_MS });
      found.push(hour);
    } catch (error) {
      if (!(error instanceof SkippedError)) throw error;
    }
  }
  return found;
}

test("secrets draw the windows of the vectors", async () => {
  for (const { secret, fingerprint, start_ms: startMs, numbers, ...terms } of VECTOR.draws) {
    const drawn = await drawnWindows(Buffer.from(secret, "hex"), fingerprint, startMs, terms);
    assert.deepEqual(drawn, numbers);
  }
});

test("collections take part as often as in the vectors", () => {
  for (const { budget, horizon_ms: horizonMs, collections, reports } of VECTOR.shares) {
    const losses = collections.map(({ loss }) => readRational(loss));
    const fits = (counts) =>
      !isAbove(sum(losses.map((loss, i) => times(loss, counts[i]))), readRational(budget));
    const windowsMs = collections.map((one) => one.window_ms);
    assert.deepEqual(sharedOut(windowsMs, horizonMs, fits), reports);
  }
});

for (const spread of [true, "rolling"]) {
  test(`it takes part in as many windows as the budget allows: ${spread}`, async () => {
    const storage = new Memory();
    const days = [];
    for (const day of [-1, 0, 1]) {
      days.push(await taken(spreading(storage, { spread }), (day * DAY_MS) + START_MS));
    }
    assert.deepEqual(days.map((day) => day.length), [3, 3, 3]);
    assert.equal(new Set(days.map(String)).size === 1, spread === "rolling");
    assert.deepEqual(await taken(spreading(storage, { spread }), START_MS, other), days[1]);
    assert.equal((await spreading(storage, { spread }).spent({ timeMs: START_MS })).exact, "6");
  });
}

test("what was drawn stands without the secret, and before 1970", async () => {
  const storage = new Memory();
  for (const startMs of [START_MS, -DAY_MS]) {
    const ledger = spreading(storage);
    const hours = [...Array(24).keys()];
    const isPart = (one, hour) => one.takesPart(roads, { timeMs: startMs + hour * HOUR_MS });
    const before = await Promise.all(hours.map((hour) => isPart(ledger, hour)));
    assert.equal(before.filter(Boolean).length, 3);
    const first = startMs + before.indexOf(true) * HOUR_MS;
    const report = await ledger.release(roads, label, { timeMs: first });
    const state = JSON.parse(storage.items.get("ldpstream.ledger"));
    delete state.secret;
    storage.setItem("ldpstream.ledger", JSON.stringify(state));
    const again = await Promise.all(hours.map((hour) => isPart(spreading(storage), hour)));
    assert.deepEqual(again, before);
    const kept = await spreading(storage).release(roads, other, { timeMs: first });
    assert.deepEqual(content(kept), content(report));
  }
});

test("rolling keeps every stretch within the budget, though secret and draw are lost", async () => {
  const storage = new Memory();
  const starts = [];
  let refused = 0;
  for (const day of [3, 0, 1, 4, 2]) {
    for (let hour = 0; hour < 24; hour += 1) {
      const timeMs = START_MS + day * DAY_MS + hour * HOUR_MS;
      try {
        starts.push((await spreading(storage, { spread: "rolling" }).release(roads, label, { timeMs })).startMs);
      } catch (error) {
        if (error instanceof BudgetError) refused += 1;
        else if (!(error instanceof SkippedError)) throw error;
      }
    }
    const state = JSON.parse(storage.items.get("ldpstream.ledger"));
    delete state.secret;
    delete state.drawn;
    storage.setItem("ldpstream.ledger", JSON.stringify(state));
  }
  assert.equal(starts.length + refused, 15);
  for (let first = START_MS - DAY_MS; first < START_MS + 5 * DAY_MS; first += HOUR_MS) {
    assert.ok(starts.filter((one) => one >= first && one < first + DAY_MS).length <= 3);
  }
});

test("a window that is not the device's is not posted", async () => {
  const storage = new Memory();
  const drawn = await taken(spreading(storage), START_MS);
  const skipped = [...Array(24).keys()].find((hour) => !drawn.includes(hour));
  const options = { ledger: spreading(storage), timeMs: START_MS + skipped * HOUR_MS };
  assert.equal(await postOnce("http://nowhere.invalid/", roads, label, options), false);
});

test("a budget below one report is refused, but what was sent is repeated", async () => {
  const refused = { name: "LedgerError", message: /at least one report of each collection/ };
  const storage = new Memory();
  for (const open of ["release", "takesPart", "kept"]) {
    const asked = open === "release" ? [roads, label, {}] : [roads, {}];
    await assert.rejects(spreading(storage, { budget: 1 })[open](...asked), refused);
  }
  assert.equal(storage.items.size, 0);
  const [hour] = await taken(spreading(storage), START_MS);
  const less = spreading(storage, { budget: 1 });
  const at = (number) => ({ timeMs: START_MS + number * HOUR_MS });
  assert.equal((await less.release(roads, other, at(hour))).fresh, false);
  await assert.rejects(less.release(roads, label, at(hour + 24)), refused);
  await assert.rejects(less.takesPart(roads, at(hour + 24)), refused);
});

test("what cannot be spread is refused", async () => {
  const refused = (options, said) =>
    assert.throws(() => spreading(new Memory(), options), (error) => error instanceof LedgerError && said.test(error.message));
  refused({ horizonMs: null }, /expected horizonMs/);
  refused({ spread: "often" }, /true, false or "rolling"/);
  refused({ horizonMs: 1_000_001 * HOUR_MS }, /1000000 windows/);
  const storage = new Memory();
  await spreading(storage).takesPart(roads, { timeMs: START_MS });
  const state = JSON.parse(storage.items.get("ldpstream.ledger"));
  for (const numbers of [[], [1, 2], [1, 1, 2], [1, 2, 24], "1", null]) {
    const drawn = Object.fromEntries(Object.keys(state.drawn).map((key) => [key, numbers]));
    storage.setItem("ldpstream.ledger", JSON.stringify({ ...state, drawn }));
    await assert.rejects(spreading(storage).takesPart(roads, { timeMs: START_MS }), LedgerError);
  }
});
