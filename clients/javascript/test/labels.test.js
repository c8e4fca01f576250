// Labels and words are the same in each of Unicode's spellings, as on the server.

import assert from "node:assert/strict";
import test from "node:test";

import { SpecError } from "../index.js";
import { readDomain } from "../src/domain.js";
import { readWords } from "../src/words.js";
import { read } from "./shared.js";

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
