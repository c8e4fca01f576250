// Types of the device client of ldpstream (formats: docs/wire.md).

/** A source of uniform, independent 64-bit words; tests pass their own. */
export interface Entropy {
  words(n: number): BigUint64Array;
}

/** `crypto.getRandomValues`. */
export declare class SystemEntropy implements Entropy {
  words(n: number): BigUint64Array;
}

/** The document that a gateway serves at `/v1/collections/NAME/spec`, and `ldpstream spec NAME` prints. */
export interface DeviceDocument {
  collection?: string;
  /** 16 hexadecimal digits. */
  fingerprint?: string;
  /** The canonical JSON of the spec, as a text. */
  canonical: string;
  tables?: DeviceTables;
  /** In collections of unknown words: the newest round, if one has begun. */
  round?: {
    fingerprint: string;
    round: number;
    start_ms: number;
    end_ms: number;
    prefixes: string[];
  };
}

export interface DeviceTables {
  blocks?: [block: number, length: number][];
  sensitive?: number[];
  /** Texts of canonical JSON. */
  policy?: string;
  channel?: string;
  /** Rows of integers. */
  strategy?: number[][];
  /** For records: the tables of each attribute. */
  attributes?: { [name: string]: DeviceTables };
}

export interface LoadOptions {
  /** The fingerprint that the device was built for; another spec is refused. */
  fingerprint?: string;
}

/**
 * A label, an integer, a number, or one entry per dimension, followed by a weight, prior or budget.
 * Integer labels of 2^53 or more are BigInts or texts.
 */
export type Value = string | number | bigint | readonly (string | number | bigint)[];

/** A value, or, for records, a value of each attribute by its name. */
export type Label = Value | { readonly [attribute: string]: Value };

export declare class Collection {
  readonly name: string;
  /** 16 hexadecimal digits. */
  readonly fingerprint: string;
  readonly precisionMs: number;
  /** Length of every report, in bytes. */
  readonly reportBytes: number;
  /** Number of values. */
  readonly size: number;
  /** In collections with `one_report`, whose reports carry tokens; else null. */
  readonly oneReport: { readonly windowMs: number; readonly partitions: number } | null;
  /** In collections with `hold`: a ledger draws once in this many windows; else null. */
  readonly hold: { readonly windows: number } | null;
  /** In collections of unknown words, whose labels are texts: the current round; else null. */
  readonly words: { readonly rounds: number; readonly round: number | null } | null;

  /** Reads a device document and checks its digests; rejects with a `SpecError`. */
  static load(document: DeviceDocument, options?: LoadOptions): Promise<Collection>;

  /** Fetches a device document and loads it. */
  static fetch(
    url: string | URL,
    options?: LoadOptions & { fetch?: typeof globalThis.fetch },
  ): Promise<Collection>;

  /** The most that one report loses, exactly. */
  largestLoss(): { numerator: bigint; denominator: bigint };

  /** One charge of a ledger, exactly: for a report, or with `hold` for an epoch's permanent draw. */
  chargedLoss(): { numerator: bigint; denominator: bigint };

  /**
   * Randomises labels into reports; throws a `ValueOutsideDomainError` that never repeats a label.
   * Here and below, `clamp` moves numbers outside the domain to its nearest end.
   */
  privatize(labels: readonly Label[], options?: { entropy?: Entropy; clamp?: boolean }): Uint8Array[];

  /**
   * Randomises labels into one frame. `timesMs` are epoch milliseconds, one for each label, by
   * default now; they are cut to the precision. `tokens`, one for each label, are for collections
   * with `oneReport`, and have one partition.
   */
  frame(
    labels: readonly Label[],
    options?: {
      timesMs?: readonly number[];
      entropy?: Entropy;
      tokens?: readonly Uint8Array[];
      clamp?: boolean;
    },
  ): Uint8Array;

  /** Frames reports that `privatize` made. */
  frameReports(
    reports: readonly Uint8Array[],
    timesMs: readonly number[],
    tokens?: readonly Uint8Array[],
  ): Uint8Array;

  /** The token of this device's report in the window of a time, by default of now. */
  token(secret: Uint8Array, timeMs?: number): Promise<Uint8Array>;
}

/** A fresh secret of a device. Keep it where it survives a reload, and send it to nobody. */
export declare function deviceSecret(): Uint8Array;

/** Ids of the mechanisms that this client has. */
export declare const SUPPORTED: readonly string[];

export declare const FRAME_MEDIA_TYPE: "application/vnd.ldpstream.frame";

/** A fresh key for an upload: 16 random bytes in hexadecimal. */
export declare function uploadKey(): string;

export interface PostOptions {
  /** The key of this upload; keep it with the frame where both survive a reload. */
  key?: string;
  /** Number of attempts, 8 by default. */
  attempts?: number;
  /** Longest wait before the second attempt, doubled for each further one; 500 by default. */
  baseMs?: number;
  /** Longest wait between attempts, except for `Retry-After`; 60,000 by default. */
  capMs?: number;
  /** Time limit of one attempt; 30,000 by default. */
  timeoutMs?: number;
  fetch?: typeof globalThis.fetch;
  sleep?: (ms: number, signal?: AbortSignal) => Promise<unknown>;
  random?: () => number;
  signal?: AbortSignal;
}

/** Posts one frame until the gateway has accepted it; rejects with an `UploadError`. */
export declare function post(
  url: string | URL,
  frame: Uint8Array,
  options?: PostOptions,
): Promise<{ accepted: number }>;

/** A storage of texts, such as `localStorage`. Its methods may be asynchronous. */
export interface LedgerStorage {
  getItem(place: string): string | null | Promise<string | null>;
  setItem(place: string, text: string): void | Promise<void>;
  /**
   * Calls `run` while nobody else uses the item, in any tab, process or machine, and resolves to its
   * result. Required if there are no Web Locks, which only pages and workers of browsers have, in
   * secure contexts.
   */
  lock?<T>(place: string, run: () => Promise<T>): Promise<T>;
}

export interface Release {
  /** One report in a frame: the same bytes at every later call for the window. */
  frame: Uint8Array;
  /** The key of its upload. */
  key: string;
  startMs: number;
  /** Whether it was drawn by this call. */
  fresh: boolean;
  /** Whether it was marked as sent. */
  sent: boolean;
}

/** One person's budget: one report for each window, and none beyond the budget. */
export declare class Ledger {
  /** Throws a `LedgerError` if an option is invalid, or nothing locks the storage. */
  constructor(options: {
    storage: LedgerStorage;
    /** The name of the item, `"ldpstream.ledger"` by default. */
    place?: string;
    /** Read as the decimal or the fraction that was written. */
    budget: number | string;
    /** Length of a period; null is a single period without end. */
    horizonMs?: number | null;
    /** The collections that may report, with the length of their windows in milliseconds. */
    collections: readonly (readonly [Collection, number])[];
    /**
     * Take part in as many windows of each period as the budget allows, drawn from the ledger's
     * secret, for each period or once for all. By default the first windows spend the budget.
     */
    spread?: boolean | "rolling";
  });

  /** Whether the device takes part in the window of a time; always without `spread`. */
  takesPart(collection: Collection, options?: { timeMs?: number }): Promise<boolean>;
  /**
   * The report of the window of a time. Rejects with a `SkippedError` if the budget is spread over
   * other windows, with a `BudgetError` beyond the budget, and with a `LedgerError` if the ledger
   * cannot be used.
   */
  release(
    collection: Collection,
    label: Label,
    options?: { timeMs?: number; entropy?: Entropy; clamp?: boolean },
  ): Promise<Release>;
  /** The stored report of the window of a time, or null. */
  kept(collection: Collection, options?: { timeMs?: number }): Promise<Release | null>;
  /** Records that a window's report has arrived, so that it is not sent again. */
  markSent(collection: Collection, startMs: number): Promise<void>;
  /** Drops the reports, not the charges, of windows that end before a time. */
  forget(collection: Collection, options: { beforeMs: number }): Promise<void>;
  /** What the period of a time has spent, or all that was spent: rounded up, and exactly. */
  spent(options?: { timeMs?: number }): Promise<{ spent: number; exact: string }>;
}

/** Uploads a window's report once; false if it had arrived before, or the window is skipped. */
export declare function postOnce(
  url: string | URL,
  collection: Collection,
  label: Label,
  options: { ledger: Ledger; timeMs?: number } & Omit<PostOptions, "key">,
): Promise<boolean>;

export declare class LedgerError extends Error {}

/** The ledger spreads its budget over other windows than this one. */
export declare class SkippedError extends LedgerError {
  readonly collection: string;
  readonly reports: number;
  readonly windows: number;
}

export declare class BudgetError extends LedgerError {
  readonly collection: string;
  /** Exact fractions. */
  readonly spent: string;
  readonly asked: string;
  readonly allowed: string;
  /** The length of a period, or null for a single one without end. */
  readonly horizonMs: number | null;
  /** When the next period begins; null if there is none, or if any span of that length is one. */
  readonly nextMs: number | null;
}

export declare class SpecError extends Error {
  readonly path: string;
}

export declare class ValueOutsideDomainError extends Error {
  /** Place of the label in the input, from 0. */
  readonly position: number;
}

export declare class UploadError extends Error {
  /** Null if nothing answered. */
  readonly status: number | null;
  /** Whether the same bytes may be sent again under the same key. */
  readonly retriable: boolean;
  readonly detail: string | null;
  readonly retryAfterMs: number | null;
}
