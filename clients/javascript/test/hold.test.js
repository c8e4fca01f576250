// A ledger of collections with hold: the same epochs and reports as in every language, charged once.

import assert from "node:assert/strict";
import test from "node:test";

import { BudgetError, Collection, Ledger, LedgerError, SpecError } from "../index.js";
import { epochOf, epochOffset } from "../src/hold.js";
import { write } from "../src/rational.js";
import { DAY_MS, HOUR_MS, Memory, START_MS, Words, hex, read } from "./shared.js";

const VECTOR = read("hold.json");
const documentOf = (name) => VECTOR.devices.find((one) => one.name === name).document;
const repeated = await Collection.load(documentOf("repeated")); // 24 windows, epsilon 1
const held = await Collection.load(documentOf("block-hadamard")); // a draw at 2

const ledgerOf = (storage, collection, options = {}) =>
  new Ledger({ storage, budget: 100, horizonMs: 2 * DAY_MS, collections: [[collection, HOUR_MS]], ...options });

test("epochs begin where the vectors say", async () => {
  for (const { secret, fingerprint, windows, offset } of VECTOR.offsets) {
    assert.equal(await epochOffset(Buffer.from(secret, "hex"), fingerprint, windows), offset);
  }
  for (const { secret, fingerprint, windows, window_ms: windowMs, start_ms: startMs, epoch } of VECTOR.epochs) {
    const found = await epochOf(Buffer.from(secret, "hex"), fingerprint, startMs, { windows, windowMs });
    assert.deepEqual([found.startMs, found.endMs], epoch);
  }
});

for (const { name, document, loss, epochs } of VECTOR.devices) {
  test(`the same words draw and send the same: ${name}`, async () => {
    const collection = await Collection.load(document);
    assert.equal(write(collection.chargedLoss()), loss);
    for (const { label, words, permanent, sent } of epochs) {
      const drawing = new Words(words);
      const drawn = collection.drawPermanent(label, { entropy: drawing });
      assert.deepEqual([hex(drawn), drawing.left.length], [permanent, 0]);
      for (const one of sent) {
        const entropy = new Words(one.words);
        assert.equal(hex(collection.hold.send(drawn, entropy)), one.report);
        assert.equal(entropy.left.length, 0);
      }
    }
  });
}

test("an epoch draws once, is charged once, and outlives its secret", async () => {
  const storage = new Memory();
  const frames = [];
  for (let hour = 0; hour < 48; hour += 1) {
    const ledger = ledgerOf(storage, repeated);
    const { frame } = await ledger.release(repeated, hour % 6, { timeMs: START_MS + hour * HOUR_MS });
    frames.push(frame.at(-1)); // the report
    const state = JSON.parse(storage.items.get("ldpstream.ledger"));
    assert.ok(!JSON.stringify(state.held).includes("label"));
    if (hour === 0) {
      delete state.secret;
      storage.setItem("ldpstream.ledger", JSON.stringify(state));
    }
  }
  const { held: epochs } = JSON.parse(storage.items.get("ldpstream.ledger"));
  const first = (epochs[0].endMs - START_MS) / HOUR_MS;
  assert.equal(new Set(frames.slice(0, first)).size, 1);
  const { exact } = await ledgerOf(storage, repeated).spent();
  assert.equal(exact, String(epochs.length));
  assert.ok(epochs.length <= 4);
});

test("a budget refuses the next epoch, not the rest of this one", async () => {
  const storage = new Memory();
  const gave = [];
  for (let hour = 0; hour < 48; hour += 1) {
    try {
      await ledgerOf(storage, held, { budget: 2 }).release(held, 3, { timeMs: START_MS + hour * HOUR_MS });
      gave.push(hour);
    } catch (error) {
      if (!(error instanceof BudgetError)) throw error;
    }
  }
  const [{ startMs, endMs }, ...others] = JSON.parse(storage.items.get("ldpstream.ledger")).held;
  assert.equal(others.length, 0);
  const hours = [...Array(48).keys()].filter((hour) => START_MS + hour * HOUR_MS >= startMs && START_MS + hour * HOUR_MS < endMs);
  assert.deepEqual(gave, hours);
  assert.equal((await ledgerOf(storage, held, { budget: 2 }).spent()).exact, "2");
});

test("forgotten draws give no second one", async () => {
  const storage = new Memory();
  const ledger = ledgerOf(storage, repeated);
  await ledger.release(repeated, 1, { timeMs: START_MS });
  const [{ endMs }] = JSON.parse(storage.items.get("ldpstream.ledger")).held;
  await ledger.forget(repeated, { beforeMs: endMs });
  assert.equal(JSON.parse(storage.items.get("ldpstream.ledger")).held[0].report, null);
  await assert.rejects(ledger.release(repeated, 1, { timeMs: endMs - 1 }), LedgerError);
});

test("what cannot be held is refused", async () => {
  assert.throws(() => ledgerOf(new Memory(), held, { spread: true }), /no spread with hold/);
  const document = documentOf("block-hadamard");
  for (const [from, to] of [['"windows":24', '"windows":1'], ['"keep":[[4,', '"keep":[[5,'], ['"version":3', '"version":1']]) {
    const canonical = document.canonical.replace(from, to);
    assert.notEqual(canonical, document.canonical);
    const changed = { ...document, canonical, fingerprint: undefined };
    await assert.rejects(Collection.load(changed), SpecError);
  }
  for (const name of ["subset-selection", "binary", "l1-bits", "l1-geometric"]) {
    const { canonical, tables } = documentOf(name);
    for (const keep of ["[]", '["1/2","1/3","1"]']) {
      const changed = { canonical: canonical.replace(/"keep":.*?,"permanent"/, `"keep":${keep},"permanent"`), tables };
      await assert.rejects(Collection.load(changed), SpecError, `${name} ${keep}`);
    }
  }
  const { canonical, tables } = documentOf("optimal");
  const none = canonical.replace(/"share":"[^"]*"/, '"share":"0x0"');
  await assert.rejects(Collection.load({ canonical: none, tables }), /hold.permanent: expected a share/);
  const storage = new Memory();
  await ledgerOf(storage, repeated).release(repeated, 1, { timeMs: START_MS });
  const state = JSON.parse(storage.items.get("ldpstream.ledger"));
  for (const change of [{ endMs: 0 }, { report: 5 }, { fingerprint: "ff" }]) {
    const broken = { ...state, held: [{ ...state.held[0], ...change }] };
    storage.setItem("ldpstream.ledger", JSON.stringify(broken));
    await assert.rejects(ledgerOf(storage, repeated).spent(), LedgerError);
  }
});
