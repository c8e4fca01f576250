// Labels and words are the same in each of Unicode's spellings, as on the server.

import assert from "node:assert/strict";
import test from "node:test";

import { Collection, SpecError, ValueOutsideDomainError } from "../index.js";
import { moveInside, readDomain } from "../src/domain.js";
import { readWords } from "../src/words.js";
import { DEVICES, read } from "./shared.js";

const NFC = "caf\u00e9";
const NFD = "cafe\u0301";

test("a label is found in either spelling, whichever the domain has", () => {
  for (const spelling of [NFC, NFD]) {
    const domain = readDomain({ values: ["bus", spelling] });
    assert.deepEqual(domain.index([NFD, NFC, "bus"]), [1, 1, 0]);
    assert.throws(() => domain.index(["cafe"]));
  }
});

test("two spellings of one label are refused", () => {
  assert.throws(() => readDomain({ values: [NFC, NFD] }), SpecError);
});

test("a word is placed alike in either spelling", () => {
  const { device, rounds } = read("words.json");
  const words = { ...JSON.parse(device.canonical).domain.words };
  const domain = readWords(words, device.fingerprint, rounds[0].document);
  const [first, second] = domain.index(["\u00e9", "e\u0301"]);
  assert.equal(first, second);
  assert.notEqual(first, domain.index(["e"])[0]);
});

test("numbers move to the nearest end, and nothing else does", () => {
  const line = readDomain({ interval: [[0, 10]], bins: [10] });
  assert.deepEqual(moveInside(line, [-3, 4.5, 99, Infinity, NaN, "7", true]), [0, 4.5, 10, 10, NaN, "7", true]);
  const grid = readDomain({ grid: [3, 5] });
  assert.deepEqual(moveInside(grid, [[-1, 9], [1, 0.5], [1]]), [[0, 4], [1, 0.5], [1]]);
  assert.throws(() => moveInside(readDomain({ values: ["a", "b"] }), ["a"]), RangeError);
});

test("a collection clamps where it is asked to", async () => {
  const mode = DEVICES.find((one) => JSON.parse(one.document.canonical).domain.grid !== undefined);
  const grid = await Collection.load(mode.document);
  assert.throws(() => grid.privatize([[-1, 0]]), ValueOutsideDomainError);
  assert.equal(grid.privatize([[-1, 0]], { clamp: true }).length, 1);
  assert.ok(grid.frame([[-1, 0]], { clamp: true }).length > 0);
});

test("values of an atom are reported alike, and what is no value is refused", () => {
  const bins = { interval: [[0, 6]], bins: [6] };
  const domain = readDomain({ atoms: [[0, 1], [1, 2], [0, 3]], of: bins });
  assert.deepEqual(domain.shape, [2]);
  assert.deepEqual(domain.index([0.5, 1, 2.99, 3, 6]), [0, 1, 1, 0, 0]);
  assert.deepEqual(moveInside(domain, [-1, 7]), [0, 6]);
  assert.throws(() => domain.index([0, 6.5]), ValueOutsideDomainError);
  assert.throws(() => readDomain({ atoms: [[0, 1]], of: bins }), SpecError);
});
