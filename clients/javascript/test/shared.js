// What the tests share: vectors and their collections, words, a storage in memory, and times.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { Collection, Ledger } from "../index.js";

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
export const START_MS = 20_000 * DAY_MS;

const VECTORS = new URL("../../../tests/vectors/", import.meta.url);

export function read(name) {
  return JSON.parse(readFileSync(new URL(name, VECTORS), "utf8"));
}

export const DEVICES = read("devices.json");

// Hands out a vector's words in their order, and knows whether all were taken.
export class Words {
  constructor(text) {
    this.left = (text.match(/.{16}/g) ?? []).map((digits) => BigInt(`0x${digits}`));
  }

  words(n) {
    assert.ok(n <= this.left.length, "more words than the vector has");
    return BigUint64Array.from(this.left.splice(0, n));
  }
}

export function hex(bytes) {
  return Buffer.from(bytes).toString("hex");
}

export async function collectionOf(name) {
  return Collection.load(DEVICES.find((one) => one.name === name).document);
}

export const roads = await collectionOf("listed blocks"); // epsilon 2
export const city = await collectionOf("high-low"); // epsilon 1.5

// As localStorage, of this program alone; `failing` writes throw, as where there is no room.
export class Memory {
  constructor() {
    this.items = new Map();
    this.failing = 0;
  }

  getItem(place) {
    return this.items.get(place) ?? null;
  }

  lock(_, run) {
    return run();
  }

  setItem(place, text) {
    if (this.failing-- > 0) throw new Error("no room");
    this.items.set(place, text);
  }
}

export const pause = () => new Promise((resolve) => setTimeout(resolve, 1));

export function ledgerOf(storage, options = {}) {
  const collections = [[roads, HOUR_MS], [city, DAY_MS]];
  return new Ledger({ storage, budget: 7.5, horizonMs: DAY_MS, collections, ...options });
}

export function content({ frame, key, startMs }) {
  return [hex(frame), key, startMs];
}

export const [label, other] = DEVICES.find(({ name }) => name === "listed blocks").labels;
