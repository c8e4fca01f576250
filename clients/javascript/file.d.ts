import type { LedgerStorage } from "./index.js";

/** A storage for ledgers in Node: a file that one process at a time uses. */
export declare class FileStorage implements LedgerStorage {
  /** Locks the file for this process until `close`; rejects with a `LedgerError` if it cannot. */
  static open(path: string): Promise<FileStorage>;
  getItem(place: string): Promise<string | null>;
  setItem(place: string, text: string): Promise<void>;
  lock<T>(place: string, run: () => Promise<T>): Promise<T>;
  /** Unlocks the file; nothing can be read or written afterwards. */
  close(): Promise<void>;
}
