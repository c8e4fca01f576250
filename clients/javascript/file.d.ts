import type { LedgerStorage } from "./index.js";

/** A storage for ledgers in Node: one file, of one process at a time. */
export declare class FileStorage implements LedgerStorage {
  /** Takes the file for this process, until `close`; rejects with a `LedgerError`. */
  static open(path: string): Promise<FileStorage>;
  getItem(place: string): Promise<string | null>;
  setItem(place: string, text: string): Promise<void>;
  lock<T>(place: string, run: () => Promise<T>): Promise<T>;
  /** Gives the file back: nothing is read or written after it. */
  close(): Promise<void>;
}
