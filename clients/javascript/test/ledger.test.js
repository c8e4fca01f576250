// The ledger: one report a window, exact sums, refusals, and what survives.

import assert from "node:assert/strict";
import { test } from "node:test";

import { BudgetError, Collection, Ledger, LedgerError, postOnce } from "../index.js";
import {
  HOUR_MS,
  DAY_MS,
  START_MS,
  DEVICES,
  collectionOf,
  roads,
  city,
  Memory,
  pause,
  ledgerOf,
  content,
  read,
  label,
  other,
} from "./shared.js";

test("reports of a collection with oneReport carry the device's token", async () => {
  const vectors = read("tokens.json");
  const ruled = await Collection.load(vectors.devices[0].document);
  const { windowMs } = ruled.oneReport;
  const make = (storage, length = windowMs) =>
    new Ledger({ storage, budget: 9, collections: [[ruled, length]] });
  const [mine, yours] = [new Memory(), new Memory()];
  const tokens = [];
  for (const [storage, day] of [[mine, 0], [mine, 1], [yours, 0]]) {
    const timeMs = START_MS + day * windowMs;
    const { frame } = await make(storage).release(ruled, "bus", { timeMs });
    tokens.push(Buffer.from(frame.slice(-8)).toString("hex"));
    const { secret } = JSON.parse(storage.getItem("ldpstream.ledger"));
    const token = await ruled.token(Uint8Array.from(Buffer.from(secret, "base64")), timeMs);
    assert.equal(Buffer.from(token).toString("hex"), tokens.at(-1));
  }
  assert.equal(new Set(tokens).size, 3);
  assert.throws(() => make(mine, windowMs / 2), LedgerError);
  const plain = new Memory();
  await ledgerOf(plain).release(roads, DEVICES.find((one) => one.name === "listed blocks").labels[0], {
    timeMs: START_MS,
  });
  assert.equal(JSON.parse(plain.getItem("ldpstream.ledger")).secret, undefined);
});

test("a window has one report, whatever is asked again, also by another ledger", async () => {
  const storage = new Memory();
  const ledger = ledgerOf(storage, { budget: 1000 });
  const first = [];
  for (let hour = 0; hour < 20; hour += 1) {
    first.push(await ledger.release(roads, label, { timeMs: START_MS + hour * HOUR_MS + 61_234 }));
  }
  assert.ok(first.every(({ fresh, sent }) => fresh && !sent));
  // Keys have 128 random bits: two of twenty are equal with probability below 10^-36.
  assert.equal(new Set(first.map(({ key }) => key)).size, 20);
  for (const [hour, before] of first.entries()) {
    const again = await ledgerOf(storage, { budget: 1 }).release(roads, other, {
      timeMs: START_MS + hour * HOUR_MS + 3_599_999,
    });
    assert.equal(again.fresh, false);
    assert.deepEqual(content(again), content(before));
  }
  assert.deepEqual(await ledger.spent(), { spent: 40, exact: "40" });
});

test("all who ask at once get the same, and are charged once", async () => {
  const ledger = ledgerOf(new Memory());
  const asked = Array.from({ length: 20 }, () => ledger.release(roads, label, { timeMs: START_MS }));
  const given = (await Promise.all(asked)).map(content);
  for (const one of given) assert.deepEqual(one, given[0]);
  assert.equal((await ledger.spent()).exact, "2");
});

test("every step of the vector", async () => {
  const vector = read("ledger.json");
  const collections = new Map();
  for (const [name, windowMs] of vector.collections) {
    collections.set(name, [await collectionOf(name), windowMs]);
  }
  const { budget, horizon_ms: horizonMs } = vector;
  const storage = new Memory();
  const ledger = new Ledger({ storage, budget, horizonMs, collections: [...collections.values()] });
  const gives = (collection, name, timeMs) => {
    const [first] = DEVICES.find((one) => one.name === name).labels;
    return ledger.release(collection, first, { timeMs }).then(
      ({ fresh, sent }) => (fresh ? "fresh" : sent ? "sent" : "again"),
      (error) => {
        assert.ok(error instanceof LedgerError);
        return error instanceof BudgetError ? "refused" : "forgotten";
      },
    );
  };
  for (const step of vector.steps) {
    const { do: what, collection: name, time_ms: timeMs } = step;
    const [collection] = collections.get(name);
    if (what === "forget") await ledger.forget(collection, { beforeMs: timeMs });
    else if (what === "mark_sent") await ledger.markSent(collection, timeMs);
    else assert.equal(await gives(collection, name, timeMs), step.gives, JSON.stringify(step));
    assert.equal((await ledger.spent({ timeMs })).exact, step.spent, JSON.stringify(step));
  }
  assert.equal((await ledger.spent()).exact, vector.spent);
});

test("ledgers that share a storage wait for each other", async () => {
  // As a file: other things happen between reading and writing.
  const storage = new Memory();
  const slow = {
    getItem: async (place) => (await pause(), storage.getItem(place)),
    setItem: async (place, text) => (await pause(), storage.setItem(place, text)),
    lock: (place, run) => storage.lock(place, run),
  };
  const ledgers = Array.from({ length: 8 }, () => ledgerOf(slow, { budget: 1000 }));
  const asked = ledgers.map((ledger, hour) =>
    ledger.release(roads, label, { timeMs: START_MS + hour * HOUR_MS }),
  );
  for (const { fresh } of await Promise.all(asked)) assert.ok(fresh);
  assert.equal((await ledgers[0].spent()).exact, "16");
});

test("a storage that nothing locks is refused, whatever Node has", () => {
  const storage = new Memory();
  const plain = { getItem: (place) => storage.getItem(place), setItem: storage.setItem.bind(storage) };
  const before = Object.getOwnPropertyDescriptor(globalThis, "navigator");
  const locks = { request: (_, run) => run() };
  Object.defineProperty(globalThis, "navigator", { value: { locks }, configurable: true });
  try {
    assert.throws(() => ledgerOf(plain), (error) => {
      assert.ok(error instanceof LedgerError);
      return /Web Locks.*FileStorage.*lock\(place, run\)/.test(error.message);
    });
  } finally {
    if (before === undefined) delete globalThis.navigator;
    else Object.defineProperty(globalThis, "navigator", before);
  }
});

test("ledgers of two programs that share a locked storage spend one budget once", async () => {
  const storage = new Memory();
  let held = Promise.resolve();
  const shared = () => ({
    getItem: async (place) => (await pause(), storage.getItem(place)),
    setItem: async (place, text) => (await pause(), storage.setItem(place, text)),
    lock: (_, run) => (held = held.catch(() => {}).then(run)),
  });
  const asked = [0, 1].map((hour) =>
    ledgerOf(shared(), { budget: 2 }).release(roads, label, { timeMs: START_MS + hour * HOUR_MS }),
  );
  const done = (await Promise.allSettled(asked)).map(({ status }) => status).sort();
  assert.deepEqual(done, ["fulfilled", "rejected"]);
});

test("what goes beyond the budget of a period is refused, exactly", async () => {
  const ledger = ledgerOf(new Memory(), { budget: "5.5" });
  const at = (hour) => ({ timeMs: START_MS + hour * HOUR_MS });
  await ledger.release(roads, label, at(3));
  await ledger.release(city, "HIV", at(1));
  await ledger.release(roads, label, at(4));
  await assert.rejects(ledger.release(roads, label, at(5)), (error) => {
    assert.ok(error instanceof BudgetError);
    assert.deepEqual([error.spent, error.asked, error.allowed], ["11/2", "2", "11/2"]);
    assert.deepEqual([error.horizonMs, error.nextMs], [DAY_MS, START_MS + DAY_MS]);
    assert.equal(
      error.message,
      `${roads.name}: expected at most 11/2 (budget) in a period of 86400000 ms (horizonMs), got 11/2 ` +
        "spent and 2 asked: wait for the next, which begins at 2024-10-05T00:00:00.000Z, or choose a " +
        "larger budget",
    );
    return true;
  });
  // What it has it still gives, and the days before and after have budgets of their own.
  assert.equal((await ledger.release(roads, label, at(3))).fresh, false);
  for (const hour of [24, -1]) assert.equal((await ledger.release(roads, label, at(hour))).fresh, true);
  assert.equal((await ledger.spent(at(0))).exact, "11/2");
  const forEver = ledgerOf(new Memory(), { budget: 2, horizonMs: null });
  await forEver.release(roads, label, at(0));
  const told = /for ever \(without horizonMs\), got 2 spent and 2 asked: choose a larger budget$/;
  await assert.rejects(forEver.release(roads, label, at(24_000)), told);
  const long = ledgerOf(new Memory(), { budget: 4, horizonMs: 100_000_000 * DAY_MS });
  await long.release(roads, label, at(0));
  await long.release(roads, label, at(1));
  await assert.rejects(long.release(roads, label, at(2)), /2 asked: choose a larger budget$/);
});

test("windows longer than a period count in all that they touch", async () => {
  const storage = new Memory();
  const weekMs = 7 * DAY_MS;
  const startMs = START_MS - (START_MS % weekMs);
  const weekly = new Ledger({ storage, budget: 9, collections: [[city, weekMs]] });
  await weekly.release(city, "HIV", { timeMs: startMs });
  const daily = new Ledger({ storage, budget: 4, horizonMs: DAY_MS, collections: [[roads, HOUR_MS]] });
  for (const day of [0, 3, 6]) {
    const timeMs = startMs + day * DAY_MS;
    assert.equal((await daily.release(roads, label, { timeMs })).fresh, true);
    await assert.rejects(daily.release(roads, label, { timeMs: timeMs + HOUR_MS }), BudgetError);
    assert.equal((await daily.spent({ timeMs })).exact, "7/2");
  }
  for (const day of [-1, 7]) {
    assert.equal((await daily.spent({ timeMs: startMs + day * DAY_MS })).exact, "0");
  }
});

test("what a window has can be asked for without a value", async () => {
  const ledger = ledgerOf(new Memory());
  assert.equal(await ledger.kept(roads, { timeMs: START_MS }), null);
  const before = await ledger.release(roads, label, { timeMs: START_MS + 5 });
  await ledger.markSent(roads, before.startMs);
  const { fresh, sent, ...rest } = await ledger.kept(roads, { timeMs: START_MS + 9 });
  assert.deepEqual([fresh, sent, content(rest)], [false, true, content(before)]);
  assert.equal((await ledger.spent()).exact, "2");
});

test("nothing is given that could not be kept", async () => {
  const storage = new Memory();
  const ledger = ledgerOf(storage);
  storage.failing = 1;
  await assert.rejects(ledger.release(roads, label, { timeMs: START_MS }), /no room/);
  assert.deepEqual([storage.items.size, (await ledger.spent()).exact], [0, "0"]);
  assert.equal((await ledger.release(roads, label, { timeMs: START_MS })).fresh, true);
});

test("a bad label costs nothing and is not told", async () => {
  const ledger = ledgerOf(new Memory());
  await assert.rejects(ledger.release(roads, "secret", { timeMs: START_MS }), (error) => {
    assert.doesNotMatch(error.message, /secret/);
    return true;
  });
  assert.equal((await ledger.spent()).exact, "0");
});

test("what is kept names no value", async () => {
  const storage = new Memory();
  const ledger = ledgerOf(storage);
  await ledger.release(city, "HIV", { timeMs: START_MS });
  const [[, text]] = storage.items;
  assert.doesNotMatch(text, /HIV/);
  const { windows } = JSON.parse(text);
  assert.deepEqual(Object.keys(windows[0]).sort(), ["fingerprint", "frame", "key", "sent", "startMs"]);
});

test("what is forgotten stays charged and gets no second report", async () => {
  const ledger = ledgerOf(new Memory());
  for (const hour of [0, 1]) await ledger.release(roads, label, { timeMs: START_MS + hour * HOUR_MS });
  await ledger.forget(roads, { beforeMs: START_MS + 2 * HOUR_MS - 1 });
  await assert.rejects(ledger.release(roads, label, { timeMs: START_MS }), /forgotten/);
  assert.equal((await ledger.release(roads, label, { timeMs: START_MS + HOUR_MS })).fresh, false);
  assert.equal((await ledger.spent()).exact, "4");
});

test("impossible ledgers are refused", async () => {
  for (const budget of [0, -1, Number.NaN, Infinity, "much", "1/0", "1e9999"]) {
    assert.throws(() => ledgerOf(new Memory(), { budget }), /budget: expected/);
  }
  assert.throws(() => ledgerOf(new Memory(), { horizonMs: DAY_MS + 1 }), /divide the horizon/);
  for (const horizonMs of [String(DAY_MS), 0, -DAY_MS, Number.NaN, 0.5]) {
    assert.throws(() => ledgerOf(new Memory(), { horizonMs }), /horizonMs: expected whole/);
  }
  const storage = new Memory();
  await ledgerOf(storage).release(roads, label, { timeMs: START_MS });
  const longer = new Ledger({ storage, budget: 9, collections: [[roads, DAY_MS]] });
  await assert.rejects(longer.release(roads, label), /windows of 3600000 ms, as before/);
  const alone = new Ledger({ storage, budget: 9, collections: [[city, DAY_MS]] });
  await assert.rejects(alone.release(roads, label), /the ledger was made with/);
  // Reports of an earlier configuration count all the same.
  const tight = new Ledger({ storage, budget: 3, collections: [[city, DAY_MS]] });
  await assert.rejects(tight.release(city, "HIV", { timeMs: START_MS }), BudgetError);
});

test("a budget below one report is refused, but what was sent is repeated", async () => {
  const storage = new Memory();
  const said = { name: "LedgerError", message: /budget: expected at least 2, which one report of .* loses, got 3\/2/ };
  const tight = () => ledgerOf(storage, { budget: 1.5 });
  for (const one of [tight().spent(), tight().takesPart(roads), tight().release(roads, label)]) {
    await assert.rejects(one, said);
  }
  assert.equal(storage.items.size, 0);
  const first = await ledgerOf(storage).release(roads, label, { timeMs: START_MS });
  const again = await tight().release(roads, other, { timeMs: START_MS });
  assert.deepEqual([again.fresh, content(again)], [false, content(first)]);
  await assert.rejects(tight().release(roads, label, { timeMs: START_MS + HOUR_MS }), BudgetError);
});

test("a damaged ledger is refused, and not started over", async () => {
  const ones = ['{"specs":{},"windows":[{}]', '{"specs":{},"windows":[null]', '{"specs":{"a":null},"windows":[]'];
  const losses = ['"0"', '"-1"', "1", "null"].map(
    (loss) => `{"specs":{"a":{"name":"a","windowMs":1,"loss":${loss}}},"windows":[]`,
  );
  const secrets = ['""', '"AAAA"', "7", "null"].map((text) => `{"specs":{},"windows":[],"secret":${text}`);
  const damaged = [...ones, ...losses, ...secrets].map((text) => `${text},"version":1}`);
  for (const text of ["", "\0", "{", "[]", "null", '{"version":2}', ...damaged]) {
    const storage = new Memory();
    storage.items.set("ldpstream.ledger", text);
    await assert.rejects(ledgerOf(storage).release(roads, label), /expected a ledger of version 1/);
    assert.equal(storage.getItem("ldpstream.ledger"), text);
  }
});

test("a report goes until it has arrived, each time as the same upload", async () => {
  const storage = new Memory();
  const seen = [];
  const answers = [503, 503, 200];
  const fetch = async (_, { body, headers }) => {
    seen.push([Buffer.from(body).toString("hex"), headers["Idempotency-Key"]]);
    const status = answers.shift();
    return new Response(JSON.stringify({ accepted: 1 }), { status });
  };
  const options = { fetch, timeMs: START_MS, attempts: 2, sleep: async () => {} };
  const send = () => postOnce("http://gateway", roads, label, { ledger: ledgerOf(storage), ...options });
  await assert.rejects(send(), { status: 503 });
  assert.equal(await send(), true);
  assert.equal(await send(), false);
  assert.equal(seen.length, 3);
  assert.equal(new Set(seen.map(String)).size, 1);
});
