// What reports lose, and the exact fractions that budgets are made of.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Collection } from "../index.js";
import { doubleAbove, isAbove, multiply, rational, readRational, write } from "../src/rational.js";
import { DEVICES, collectionOf, read } from "./shared.js";

const LOSSES = read("losses.json");

test("losses are never below the exact ones, and hardly above", async () => {
  for (const { name, document } of DEVICES) {
    const exact = readRational(LOSSES[name]);
    const loss = (await Collection.load(document)).largestLoss();
    const { mechanism, parameters } = JSON.parse(document.canonical);
    // Of some of matrix the noise itself is taken, which may lose less than its policy allows.
    if (mechanism === "matrix") assert.ok(isAbove(loss, rational(0)), name);
    else assert.ok(!isAbove(exact, loss), name);
    assert.ok(!isAbove(loss, multiply(exact, rational(1 + 1e-9))), name);
    const rounded = ["lip", "matrix", "optimal"].includes(mechanism) || parameters.p === 2;
    if (!rounded) assert.equal(write(loss), LOSSES[name], name);
  }
});

test("of matrix with scales the steps of all rows are added up", async () => {
  const loss = (await collectionOf("matrix scales")).largestLoss();
  // Values 0 and 2: rows [1, 1, -1, -1], [1, -1, 0, 0], [0, 0, 1, -1] of scales 8, 3 and 2.5.
  const expected = 2 / 8 + 1 / 3 + 1 / 2.5;
  assert.ok(Math.abs(doubleAbove(loss) - expected) < 1e-9);
});

test("numbers are read as they were written", () => {
  const read = { 0.1: "1/10", 1e-7: "1/10000000", "2.50": "5/2", 3: "3", "2/6": "1/3" };
  for (const [text, expected] of Object.entries(read)) assert.equal(write(readRational(text)), expected);
  for (const text of ["", "-1", "NaN", "Infinity", "1/0", "0x10", " 1", "1e9999"]) {
    assert.equal(readRational(text), null, text);
  }
  for (const number of [0, 0.1, 1 / 3, 5, 1e-12]) {
    const above = doubleAbove(rational(number));
    assert.ok(above >= number && above <= number * (1 + 1e-12) + 1e-18);
  }
});
