// Devices of ldpstream: formats of docs/wire.md.

/** Gives uniform, independent 64-bit words; tests hand out their own. */
export interface Entropy {
  words(n: number): BigUint64Array;
}

/** `crypto.getRandomValues`. */
export declare class SystemEntropy implements Entropy {
  words(n: number): BigUint64Array;
}

/** What a gateway answers at `/v1/collections/NAME/spec`, and `ldpstream spec NAME` prints. */
export interface DeviceDocument {
  collection?: string;
  /** 16 hexadecimal digits. */
  fingerprint?: string;
  /** The canonical JSON of the spec, as a text. */
  canonical: string;
  tables?: DeviceTables;
  /** Of unknown words: what the newest round asks about, where one has begun. */
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
  /** Of records: those of each attribute. */
  attributes?: { [name: string]: DeviceTables };
}

export interface LoadOptions {
  /** The fingerprint that the device was built for; another spec is refused. */
  fingerprint?: string;
}

/** A label, an integer, a number, or one entry a dimension; weights, priors, budgets come last. */
export type Value = string | number | readonly (string | number)[];

/** A value, or of records one for each attribute, by its name. */
export type Label = Value | { readonly [attribute: string]: Value };

export declare class Collection {
  readonly name: string;
  /** 16 hexadecimal digits. */
  readonly fingerprint: string;
  readonly precisionMs: number;
  /** Length of every report. */
  readonly reportBytes: number;
  /** Number of values. */
  readonly size: number;
  /** Of collections with `one_report`, whose reports carry tokens. */
  readonly oneReport: { readonly windowMs: number; readonly partitions: number } | null;
  /** Of collections with `hold`: a ledger draws once in this many windows. */
  readonly hold: { readonly windows: number } | null;

  /** Of collections of unknown words, whose labels are texts: the round that this one is in. */
  readonly words: { readonly rounds: number; readonly round: number | null } | null;

  /** Reads a device document and checks its digests; rejects with a `SpecError`. */
  static load(document: DeviceDocument, options?: LoadOptions): Promise<Collection>;

  /** Fetches a device document and loads it. */
  static fetch(
    url: string | URL,
    options?: LoadOptions & { fetch?: typeof globalThis.fetch },
  ): Promise<Collection>;

  /** What one report loses at most, exactly. */
  largestLoss(): { numerator: bigint; denominator: bigint };

  /** What a ledger charges at a time, exactly: with `hold` an epoch's permanent draw, else a report. */
  chargedLoss(): { numerator: bigint; denominator: bigint };

  /** Randomises labels into reports; throws a `ValueOutsideDomainError` that never tells a label. */
  privatize(labels: readonly Label[], options?: { entropy?: Entropy }): Uint8Array[];

  /**
   * Randomises labels into one frame. `timesMs` are epoch milliseconds, one for each label, by
   * default now; they are cut to the precision here. `tokens`, one for each label, are for
   * collections with `oneReport`, and all of one partition.
   */
  frame(
    labels: readonly Label[],
    options?: {
      timesMs?: readonly number[];
      entropy?: Entropy;
      tokens?: readonly Uint8Array[];
    },
  ): Uint8Array;

  /** Frames reports that `privatize` made. */
  frameReports(
    reports: readonly Uint8Array[],
    timesMs: readonly number[],
    tokens?: readonly Uint8Array[],
  ): Uint8Array;

  /** The token of this device's report in the window of a time, by default now. */
  token(secret: Uint8Array, timeMs?: number): Promise<Uint8Array>;
}

/** A fresh secret of a device: kept where it survives a reload, and sent to nobody. */
export declare function deviceSecret(): Uint8Array;

/** Ids of the mechanisms that this client has. */
export declare const SUPPORTED: readonly string[];

export declare const FRAME_MEDIA_TYPE: "application/vnd.ldpstream.frame";

/** A fresh key of an upload: 16 random bytes in hexadecimal. */
export declare function uploadKey(): string;

export interface PostOptions {
  /** Of this upload; kept with the frame where both survive a reload. */
  key?: string;
  /** Attempts in all, 8 by default. */
  attempts?: number;
  /** The longest wait before the second attempt, doubled for each further one; 500. */
  baseMs?: number;
  /** The longest wait at all, but for `Retry-After`; 60,000. */
  capMs?: number;
  /** How long one attempt may take; 30,000. */
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

/** `localStorage` is one. A ledger waits for what is asynchronous. */
export interface LedgerStorage {
  getItem(place: string): string | null | Promise<string | null>;
  setItem(place: string, text: string): void | Promise<void>;
  /**
   * Calls `run` while nobody else uses the item, in whatever tab, process or machine, and resolves to
   * what it resolves to. Needed where there are no Web Locks: everywhere but in pages and workers of
   * browsers, in secure contexts.
   */
  lock?<T>(place: string, run: () => Promise<T>): Promise<T>;
}

export interface Release {
  /** One report, framed: the same bytes whenever the window is asked for again. */
  frame: Uint8Array;
  /** Of its upload. */
  key: string;
  startMs: number;
  /** Whether it was drawn now. */
  fresh: boolean;
  /** Whether it was marked as arrived. */
  sent: boolean;
}

/** One person's budget: one report a window, and none beyond the budget. */
export declare class Ledger {
  /** Throws a `LedgerError` for what cannot be, and where nothing locks the storage. */
  constructor(options: {
    storage: LedgerStorage;
    /** The item's name, `"ldpstream.ledger"`. */
    place?: string;
    /** Read as the decimal, or fraction, that was written. */
    budget: number | string;
    /** Length of a period; null: one for ever. */
    horizonMs?: number | null;
    /** Those that may report, with the length of their windows in milliseconds. */
    collections: readonly (readonly [Collection, number])[];
    /**
     * Take part in some windows of each period only, as many as the budget allows, drawn from the
     * ledger's secret: for each period, or once for all. By default the first windows spend it.
     */
    spread?: boolean | "rolling";
  });

  /** Whether the window that holds a time is the device's; without `spread` every one is. */
  takesPart(collection: Collection, options?: { timeMs?: number }): Promise<boolean>;
  /**
   * Rejects with a `SkippedError` where the budget is spread and the window is not the device's, with
   * a `BudgetError` beyond the budget, and a `LedgerError` where it cannot be used.
   */
  release(
    collection: Collection,
    label: Label,
    options?: { timeMs?: number; entropy?: Entropy },
  ): Promise<Release>;
  /** What the window that holds a time has; null where it has nothing yet. */
  kept(collection: Collection, options?: { timeMs?: number }): Promise<Release | null>;
  markSent(collection: Collection, startMs: number): Promise<void>;
  /** Drops the reports of windows that have ended by then, not their charges. */
  forget(collection: Collection, options: { beforeMs: number }): Promise<void>;
  /** Of the period that holds a time, or ever: not below what was spent, and exactly. */
  spent(options?: { timeMs?: number }): Promise<{ spent: number; exact: string }>;
}

/** Uploads a window's report once; false where it had arrived before, or the window is skipped. */
export declare function postOnce(
  url: string | URL,
  collection: Collection,
  label: Label,
  options: { ledger: Ledger; timeMs?: number } & Omit<PostOptions, "key">,
): Promise<boolean>;

export declare class LedgerError extends Error {}

/** The budget is spread over other windows. */
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
}

export declare class SpecError extends Error {
  readonly path: string;
}

export declare class ValueOutsideDomainError extends Error {
  /** Place of the label in the input, from 0. */
  readonly position: number;
}

export declare class UploadError extends Error {
  /** Null where nothing answered. */
  readonly status: number | null;
  /** Whether the same bytes may be sent again under the same key. */
  readonly retriable: boolean;
  readonly detail: string | null;
  readonly retryAfterMs: number | null;
}
