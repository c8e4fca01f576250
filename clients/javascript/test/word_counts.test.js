// How many words a report takes does not depend on the value: somebody who counts calls learns nothing.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Collection, Ledger } from "../index.js";
import { DEVICES, HOUR_MS, Memory, START_MS, read } from "./shared.js";

// Points of a projective space are drawn by rejection, equally likely for every value.
const REJECTS = /"projective-geometry"|"q":/;

// Where epochs begin follows from the secret.
const STATE = { version: 1, specs: {}, windows: [], secret: "A".repeat(43) };

// Words of a seed (splitmix64), and how many each call took.
class Counting {
  constructor(seed) {
    this.state = BigInt(seed);
    this.calls = [];
  }

  words(n) {
    this.calls.push(n);
    return BigUint64Array.from({ length: n }, () => {
      this.state = BigInt.asUintN(64, this.state + 0x9e3779b97f4a7c15n);
      let z = this.state;
      z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
      z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
      return z ^ (z >> 31n);
    });
  }
}

async function assertAlike(labels, draw) {
  for (let seed = 0; seed < 12; seed += 1) {
    const found = new Set();
    for (const label of labels) {
      const entropy = new Counting(seed);
      await draw(label, entropy);
      found.add(entropy.calls.join());
    }
    assert.equal(found.size, 1, `seed ${seed}: ${[...found].join(" or ")}`);
  }
}

const isOneBlock = ({ document: { canonical, tables } }) =>
  !REJECTS.test(canonical) && tables?.blocks === undefined;

for (const { name, document, labels } of DEVICES.filter(isOneBlock)) {
  test(`every label takes as many words: ${name}`, async () => {
    const collection = await Collection.load(document);
    await assertAlike(labels, (label, entropy) => collection.privatize([label], { entropy }));
  });
}

for (const { name, document, epochs } of read("hold.json").devices.filter(isOneBlock)) {
  test(`an epoch takes as many words whatever its first label is: ${name}`, async () => {
    const collection = await Collection.load(document);
    await assertAlike(epochs.map(({ label }) => label), async (label, entropy) => {
      const collections = [[collection, HOUR_MS]];
      const storage = new Memory();
      storage.setItem("ldpstream.ledger", JSON.stringify(STATE));
      const ledger = new Ledger({ storage, budget: 1000, horizonMs: null, collections });
      for (let hour = 0; hour < 3; hour += 1) {
        await ledger.release(collection, label, { timeMs: START_MS + hour * HOUR_MS, entropy });
      }
    });
  });
}
