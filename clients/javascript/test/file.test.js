// A ledger's file in Node: one holder, also after a crash, and readable for its owner only.

import assert from "node:assert/strict";
import { mkdtemp, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { FileStorage } from "../file.js";
import { LedgerError } from "../index.js";
import { START_MS, roads, ledgerOf, content, label, other } from "./shared.js";

test("a file of one process, readable for its owner only, taken over from one that was killed", async () => {
  const folder = await mkdtemp(join(tmpdir(), "ledger-"));
  try {
    const path = join(folder, "me.ledger");
    const storage = await FileStorage.open(path);
    const kept = content(await ledgerOf(storage).release(roads, label, { timeMs: START_MS }));
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    await assert.rejects(FileStorage.open(path), LedgerError);
    await storage.close();
    await assert.rejects(ledgerOf(storage).release(roads, label, { timeMs: START_MS }), /is open/);
    await writeFile(`${path}.lock`, "2147483646"); // larger than any process's number
    const later = await FileStorage.open(path);
    const again = await ledgerOf(later).release(roads, other, { timeMs: START_MS + 1 });
    assert.deepEqual(content(again), kept);
    await later.close();
    await assert.rejects(FileStorage.open(join(folder, "missing", "x")), LedgerError);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("of those who find the file of one that was killed, one has it", async () => {
  const folder = await mkdtemp(join(tmpdir(), "ledger-"));
  try {
    const path = join(folder, "me.ledger");
    for (let round = 0; round < 10; round += 1) {
      await writeFile(`${path}.lock`, "2147483646 7");
      const tried = await Promise.allSettled(Array.from({ length: 8 }, () => FileStorage.open(path)));
      const [storage, ...others] = tried.flatMap(({ value }) => value ?? []);
      assert.equal(others.length, 0);
      for (const { reason } of tried) assert.ok(reason === undefined || reason instanceof LedgerError);
      await storage.close();
      assert.deepEqual(await readdir(folder), []);
    }
    for (const text of ["", "7 ", "0 1", "-1 1"]) {
      await writeFile(`${path}.lock`, text); // of one who is about to write it, or nobody knows
      await assert.rejects(FileStorage.open(path), LedgerError);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("a lock of another process that had this one's number is stale", async (context) => {
  if (process.platform !== "linux") return context.skip("only Linux says when a process began");
  const folder = await mkdtemp(join(tmpdir(), "ledger-"));
  try {
    const path = join(folder, "me.ledger");
    await writeFile(`${path}.lock`, `${process.pid} 1`);
    const storage = await FileStorage.open(path);
    const lock = await readFile(`${path}.lock`, "utf8");
    assert.match(lock, new RegExp(`^${process.pid} [0-9]{2,}$`));
    await storage.close();
  } finally {
    await rm(folder, { recursive: true });
  }
});
