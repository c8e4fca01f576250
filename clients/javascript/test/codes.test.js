// Integer labels are codes: known by all their digits, also where no number holds them.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Collection, ValueOutsideDomainError } from "../index.js";
import { parseExactly } from "../src/exact_json.js";
import { DEVICES, Words, hex } from "./shared.js";

const { document, labels, words, reports } = DEVICES.find(({ name }) => name === "large codes");
const collection = await Collection.load(document);

test("codes are found as texts, and as numbers or BigInts of the same digits", () => {
  const entropy = () => new Words(words);
  assert.deepEqual(collection.privatize(labels, { entropy: entropy() }).map(hex), reports);
  const wholeOf = (label) => (Number.isSafeInteger(Number(label)) ? Number(label) : BigInt(label));
  const given = labels.map((label) => (label.startsWith("0") ? label : wholeOf(label)));
  assert.ok(given.some((label) => typeof label === "bigint"));
  assert.deepEqual(collection.privatize(given, { entropy: entropy() }).map(hex), reports);
});

test("a number that stands for several integers is refused, and the message says what to give", () => {
  for (const label of [2 ** 53, 2 ** 53 + 2, -(2 ** 53), 3n, "9007199254740995"]) {
    assert.throws(
      () => collection.privatize([label]),
      (error) =>
        error instanceof ValueOutsideDomainError &&
        error.message.endsWith("(integers of 2^53 or more as BigInt or text)"),
    );
  }
});

test("JSON keeps all digits of integers, and everything else", () => {
  const text = '{"a\\"1": [9007199254740993, -9007199254740993, 12, 0.30000000000000004, 1e300, "x 9007199254740993"]}';
  assert.deepEqual(parseExactly(text), {
    'a"1': ["9007199254740993", "-9007199254740993", 12, 0.30000000000000004, 1e300, "x 9007199254740993"],
  });
});
