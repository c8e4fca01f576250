// A storage for ledgers in Node: one file, of one process at a time, readable for its owner only.

import { open, readFile, rename, unlink } from "node:fs/promises";
import { dirname } from "node:path";

import { LedgerError } from "./src/errors.js";

export class FileStorage {
  #path;

  constructor(path) {
    this.#path = path;
  }

  // Takes the file for this process, until `close`.
  static async open(path) {
    for (let attempt = 0; ; attempt += 1) {
      try {
        await writeNew(`${path}.lock`, String(process.pid));
        return new FileStorage(path);
      } catch (error) {
        if (error.code !== "EEXIST" || attempt > 0 || (await isHeld(`${path}.lock`))) {
          throw new LedgerError(`${path}: expected a file that can be written and that nobody uses`);
        }
        await unlink(`${path}.lock`); // of a process that was killed
      }
    }
  }

  async close() {
    await unlink(`${this.#path}.lock`);
  }

  async getItem() {
    try {
      return await readFile(this.#path, "utf8");
    } catch (error) {
      if (error.code === "ENOENT") return null;
      throw new LedgerError(`${this.#path}: expected a readable file: ${error.code}`);
    }
  }

  // All or nothing, and on disk when it resolves: also after a power failure.
  async setItem(_, text) {
    await writeNew(`${this.#path}.new`, text, "w");
    await rename(`${this.#path}.new`, this.#path);
    const folder = await open(dirname(this.#path), "r");
    await folder.sync();
    await folder.close();
  }
}

async function writeNew(path, text, flags = "wx") {
  const file = await open(path, flags, 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function isHeld(lock) {
  const holder = Number(await readFile(lock, "utf8"));
  try {
    process.kill(holder, 0);
    return true;
  } catch (error) {
    return error.code !== "ESRCH";
  }
}
