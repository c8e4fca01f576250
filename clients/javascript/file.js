// A storage for ledgers in Node: a file that one process at a time uses, readable by its owner only.

import { open, readFile, rename, rm, unlink } from "node:fs/promises";
import { dirname } from "node:path";

import { LedgerError } from "./src/errors.js";

export class FileStorage {
  #path;
  #isOpen = false;

  constructor(path) {
    this.#path = path;
  }

  // Locks the file for this process until `close`.
  static async open(path) {
    const storage = new FileStorage(path);
    try {
      if (!(await isTaken(`${path}.lock`))) await replaceStale(`${path}.lock`);
    } catch (error) {
      if (!(error instanceof InUse) && error.code === undefined) throw error;
      throw new LedgerError(
        `${path}: expected a file that can be written and that nobody uses (see ${path}.lock*)`,
      );
    }
    storage.#isOpen = true;
    return storage;
  }

  async close() {
    this.#check();
    this.#isOpen = false;
    await unlink(`${this.#path}.lock`);
  }

  async getItem() {
    this.#check();
    try {
      return await readFile(this.#path, "utf8");
    } catch (error) {
      if (error.code === "ENOENT") return null;
      throw new LedgerError(`${this.#path}: expected a readable file: ${error.code}`);
    }
  }

  // The process has locked the file until `close`; its ledgers wait for each other.
  async lock(_, run) {
    this.#check();
    return run();
  }

  // Atomic, and on disk once it resolves, so that it survives a power failure.
  async setItem(_, text) {
    this.#check();
    await writeNew(`${this.#path}.new`, text, "w");
    await rename(`${this.#path}.new`, this.#path);
    const folder = await open(dirname(this.#path), "r");
    await folder.sync();
    await folder.close();
  }

  // After `close` another process may use the file.
  #check() {
    if (!this.#isOpen) throw new LedgerError(`${this.#path}: expected a file that is open`);
  }
}

class InUse extends Error {}

// Resolves to true if this process takes the lock, to false if somebody holds it.
async function isTaken(lock) {
  try {
    await writeNew(lock, await identity(process.pid));
    return true;
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
    return false;
  }
}

// Takes over the lock of a killed process. If several processes try, one at a time continues and
// checks again; otherwise the others would remove the lock of the first.
async function replaceStale(lock) {
  if (await isHeld(lock)) throw new InUse();
  if (!(await isTaken(`${lock}.stale`))) throw new InUse();
  try {
    if (await isHeld(lock)) throw new InUse();
    await rm(lock, { force: true });
    if (!(await isTaken(lock))) throw new InUse();
  } finally {
    await unlink(`${lock}.stale`);
  }
}

async function writeNew(path, text, flags = "wx") {
  const file = await open(path, flags, 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } catch (error) {
    await unlink(path);
    throw error;
  } finally {
    await file.close();
  }
}

// A lock that is not fully written is held by a process that is about to write it.
async function isHeld(lock) {
  const holder = await readFile(lock, "utf8").catch((error) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  if (holder === null) return false;
  const [, number, start] = /^([1-9][0-9]*)(?: (\S+))?$/.exec(holder) ?? [];
  if (number === undefined) return true;
  if (!isAlive(Number(number))) return false;
  return start === undefined || holder === (await identity(Number(number)));
}

function isAlive(number) {
  try {
    process.kill(number, 0);
    return true;
  } catch (error) {
    return error.code !== "ESRCH";
  }
}

// The number of a process, and its start time if the system provides it: numbers are reused, and a
// restarted container assigns the same ones.
async function identity(number) {
  const stat = await readFile(`/proc/${number}/stat`, "utf8").catch(() => "");
  return `${number} ${stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "-"}`;
}
