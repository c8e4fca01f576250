// A storage for ledgers in Node: one file, of one process at a time, readable for its owner only.

import { open, readFile, rename, rm, unlink } from "node:fs/promises";
import { dirname } from "node:path";

import { LedgerError } from "./src/errors.js";

export class FileStorage {
  #path;
  #isOpen = false;

  constructor(path) {
    this.#path = path;
  }

  // Takes the file for this process, until `close`.
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

  // The file is this process's until `close`; ledgers in it wait for each other.
  async lock(_, run) {
    this.#check();
    return run();
  }

  // All or nothing, and on disk when it resolves: also after a power failure.
  async setItem(_, text) {
    this.#check();
    await writeNew(`${this.#path}.new`, text, "w");
    await rename(`${this.#path}.new`, this.#path);
    const folder = await open(dirname(this.#path), "r");
    await folder.sync();
    await folder.close();
  }

  // Another process may have the file by now.
  #check() {
    if (!this.#isOpen) throw new LedgerError(`${this.#path}: expected a file that is open`);
  }
}

class InUse extends Error {}

// Resolves to whether the lock is this process's now; to false where somebody has it.
async function isTaken(lock) {
  try {
    await writeNew(lock, await identity(process.pid));
    return true;
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
    return false;
  }
}

// Takes the lock of a process that was killed. Of several that find it so one at a time goes on, and
// looks again: the others would remove the lock of the first.
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

// What is not written in full is held: by one who is about to write it.
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

// A process's number, and when it began where the system says so: numbers are used again, and in a
// container that was started over they are all the same.
async function identity(number) {
  const stat = await readFile(`/proc/${number}/stat`, "utf8").catch(() => "");
  return `${number} ${stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "-"}`;
}
