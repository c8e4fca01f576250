// Unknown words: the places of the vectors, and a ledger that reports in one round, once for ever.

import assert from "node:assert/strict";
import test from "node:test";

import { BudgetError, Collection, Ledger, LedgerError, SkippedError, SpecError, ValueOutsideDomainError } from "../index.js";
import { readWords } from "../src/words.js";
import { HOUR_MS, Memory, read } from "./shared.js";

const { device, rounds, refused } = read("words.json");
const WORDS = JSON.parse(device.canonical).domain.words;

const inRound = (round) => Collection.load({ ...device, round }, { fingerprint: device.fingerprint });
const plain = await inRound(undefined);
const ledgerOf = (storage, options = {}) =>
  new Ledger({ storage, budget: 4, collections: [[plain, HOUR_MS]], ...options });
const later = (round, runs) => {
  const over = runs * WORDS.rounds * HOUR_MS;
  return { ...round, start_ms: round.start_ms + over, end_ms: round.end_ms + over };
};

test("words have the places of the vectors", () => {
  for (const { document, places } of rounds) {
    const domain = readWords(WORDS, device.fingerprint, document);
    assert.deepEqual(domain.index(places.map(([label]) => label)), places.map(([, place]) => place));
    assert.deepEqual(domain.shape, [513]);
  }
});

test("what is no word, and words without a round, are refused", async () => {
  const own = await inRound(rounds[0].document);
  for (const wrong of [7, null, "a\0", "\ud800"]) {
    assert.throws(() => own.privatize(["a", wrong]), (error) => error instanceof ValueOutsideDomainError && error.position === 1);
  }
  assert.throws(() => plain.privatize(["a"]), SpecError);
  assert.deepEqual([plain.words.round, own.words.round, own.words.rounds], [null, 0, 3]);
});

test("rounds beyond what a device has fixed are refused", async () => {
  for (const document of refused) await assert.rejects(inRound(document), SpecError);
});

test("a device reports in the round of its secret, once for ever", async () => {
  const reported = [];
  for (let device = 0; device < 12; device += 1) {
    const storage = new Memory();
    for (const runs of [0, 1]) {
      for (const { document } of rounds) {
        const own = await inRound(later(document, runs));
        const timeMs = own.words.startMs;
        const part = await ledgerOf(storage).takesPart(plain, { timeMs });
        try {
          const { fresh } = await ledgerOf(storage).release(own, "ab", { timeMs });
          assert.ok(fresh && part && runs === 0);
          assert.equal((await ledgerOf(storage).release(own, "zz", { timeMs })).fresh, false);
          reported.push(own.words.round);
        } catch (error) {
          assert.ok(part ? error instanceof BudgetError && runs === 1 : error instanceof SkippedError);
        }
      }
    }
    assert.equal((await ledgerOf(storage).spent()).exact, "4");
  }
  assert.equal(reported.length, 12);
  assert.ok(new Set(reported).size > 1);
});

test("another window, and a budget that begins again, are refused", async () => {
  for (const options of [{ horizonMs: 3 * HOUR_MS }, { horizonMs: 3 * HOUR_MS, spread: true }]) {
    assert.throws(() => ledgerOf(new Memory(), options), LedgerError);
  }
  const own = await inRound(rounds[0].document);
  const storage = new Memory();
  const found = [];
  for (let hour = 1; hour < 30 && found.length === 0; hour += 1) {
    const release = ledgerOf(storage).release(own, "ab", { timeMs: own.words.startMs + hour * HOUR_MS });
    await release.catch((error) => error instanceof SkippedError || found.push(error.message));
  }
  assert.match(found[0], /expected a time in the window of round 0/);
  assert.equal((await ledgerOf(storage).spent()).exact, "0");
});
