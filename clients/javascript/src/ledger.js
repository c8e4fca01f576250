// One person's budget ledger: one report for each window, the same one at every later call, and no
// report beyond the budget. docs/how-to/devices.md says what this protects and what it does not.

import { SystemEntropy } from "./entropy.js";
import { BudgetError, LedgerError, SkippedError } from "./errors.js";
import { cutTime } from "./frame.js";
import { epochOf } from "./hold.js";
import { epochWith, find, forgotten, isCharged, isOf, spentOf } from "./ledger_charges.js";
import { lockOf, readState, toBytes, toText } from "./ledger_state.js";
import { checkBudget, readTerms } from "./ledger_terms.js";
import { sum } from "./loss.js";
import { doubleAbove, isAbove, write } from "./rational.js";
import { drawnWindows } from "./spread.js";
import { deviceSecret } from "./token.js";
import { post, uploadKey } from "./upload.js";

// The last operation on each storage, because several ledgers may share one.
const last = new WeakMap();

export class Ledger {
  #storage;
  #place;
  #horizonMs;
  #terms;

  // `storage` is localStorage, a FileStorage (file.js), or any object with getItem and setItem, which
  // may be asynchronous, and lock(place, run), which calls run while nobody else uses the item. With
  // Web Locks `lock` is optional. `place` is the name of the item. `collections` are those that may
  // report, each with the length of its windows in milliseconds. `horizonMs` is the length of a
  // period, or null for a single period without end. `budget` is read as the decimal or fraction that
  // was written. With `spread` the ledger takes part in as many windows of each period as the budget
  // allows, drawn from its secret: true draws for each period, "rolling" draws once, so that any time
  // span as long as a period keeps the budget.
  constructor({
    storage,
    place = "ldpstream.ledger",
    budget,
    horizonMs = null,
    collections,
    spread = false,
  }) {
    this.#storage = storage;
    this.#place = place;
    this.#horizonMs = horizonMs;
    this.#terms = readTerms({ storage, budget, horizonMs, collections, spread });
  }

  // Resolves to whether the device takes part in the window of a time; always without spread. The draw
  // for a period is stored and final; a window that is missed is lost.
  async takesPart(collection, { timeMs = Date.now() } = {}) {
    const { startMs } = this.#window(collection, timeMs);
    return this.#alone(async () => this.#isDrawn(await this.#read(), collection, startMs));
  }

  // The number of a period's windows in which the device takes part, or null for all of them. In the
  // discovery of words this is one round of a run.
  #share(collection, startMs) {
    const { windowMs, windows, reports } = this.#known(collection);
    if (collection.words !== null) {
      const { rounds } = collection.words;
      return { windowMs, windows: rounds, reports: 1, firstMs: cutTime(startMs, rounds * windowMs) };
    }
    if (!this.#terms.spread) return null;
    if (reports === null) checkBudget(this.#terms);
    const firstMs = this.#terms.spread === "rolling" ? null : cutTime(startMs, this.#horizonMs);
    return { windowMs, windows, reports, firstMs };
  }

  async #isDrawn(state, collection, startMs) {
    const share = this.#share(collection, startMs);
    if (share === null) return true;
    const { windowMs, windows, reports, firstMs } = share;
    const key = [collection.fingerprint, firstMs ?? "rolling", windows, reports].join(" ");
    state.drawn ??= {};
    if (state.drawn[key] === undefined) {
      state.secret ??= toText(deviceSecret());
      const terms = { windows, reports };
      const secret = toBytes(state.secret);
      state.drawn[key] = await drawnWindows(secret, collection.fingerprint, firstMs, terms);
      await this.#write(state);
    }
    const place = Math.floor(startMs / windowMs) % windows;
    return state.drawn[key].includes(place < 0 ? place + windows : place);
  }

  // Resolves to the report of the window of a time, in a frame with the key of its upload: the stored
  // one, whatever the label, or a fresh one, which is stored before it is returned.
  async release(collection, label, { timeMs = Date.now(), entropy, clamp } = {}) {
    const { cutMs, startMs } = this.#window(collection, timeMs);
    const { fingerprint } = collection;
    return this.#alone(async () => {
      const state = await this.#read();
      const before = find(state, collection, startMs);
      if (before !== undefined) return given(before, false);
      if (!(await this.#isDrawn(state, collection, startMs))) {
        throw new SkippedError(collection.name, this.#share(collection, startMs));
      }
      this.#checkRound(collection, startMs);
      this.#charge(state, collection, startMs);
      const tokens = await tokensOf(state, collection, cutMs);
      const report = await this.#draw(state, collection, startMs, { label, entropy, clamp });
      const frame = toText(collection.frameReports([report], [cutMs], tokens));
      const window = { fingerprint, startMs, frame, key: uploadKey(), sent: false };
      state.windows.push(window);
      await this.#write(state);
      return given(window, true);
    });
  }

  // Draws the report of a window. With hold it follows from the permanent report of its epoch, which is
  // drawn for the first label of the epoch.
  async #draw(state, collection, startMs, { label, entropy = new SystemEntropy(), clamp }) {
    if (collection.hold === null) return collection.privatize([label], { entropy, clamp })[0];
    let epoch = epochWith(state, collection, startMs);
    if (epoch === undefined) {
      state.secret ??= toText(deviceSecret());
      const terms = { windows: collection.hold.windows, windowMs: this.#known(collection).windowMs };
      const { fingerprint } = collection;
      const span = await epochOf(toBytes(state.secret), fingerprint, startMs, terms);
      const report = toText(collection.drawPermanent(label, { entropy, clamp }));
      epoch = { fingerprint, ...span, report };
      state.held = [...(state.held ?? []), epoch];
    }
    if (epoch.report === null) throw forgotten(collection);
    return collection.hold.send(toBytes(epoch.report), entropy);
  }

  // Resolves to the stored report of the window of a time, or to null.
  async kept(collection, { timeMs = Date.now() } = {}) {
    const { startMs } = this.#window(collection, timeMs);
    const before = find(await this.#read(), collection, startMs);
    return before === undefined ? null : given(before, false);
  }

  // Records that a window's report has arrived and need not be sent again.
  async markSent(collection, startMs) {
    return this.#alone(async () => {
      const state = await this.#read();
      // The window may have been forgotten meanwhile; its report has arrived nevertheless.
      const window = state.windows.find(isOf(collection, startMs));
      if (window === undefined || window.sent) return;
      window.sent = true;
      await this.#write(state);
    });
  }

  // Drops the reports of windows that end before a time. They stay charged and get no second report.
  async forget(collection, { beforeMs }) {
    const { windowMs } = this.#known(collection);
    return this.#alone(async () => {
      const state = await this.#read();
      for (const window of state.windows) {
        const ended = window.startMs + windowMs <= beforeMs;
        if (ended && window.fingerprint === collection.fingerprint) window.frame = window.key = null;
      }
      for (const epoch of state.held ?? []) {
        const isOurs = epoch.fingerprint === collection.fingerprint;
        if (isOurs && epoch.endMs <= beforeMs) epoch.report = null;
      }
      await this.#write(state);
    });
  }

  // What the period of a time has spent, or, without a time, all that was ever spent: a number rounded
  // up, and the exact fraction as a text.
  async spent({ timeMs } = {}) {
    const state = await this.#read();
    const total = spentOf(state, timeMs === undefined ? () => true : this.#period(timeMs));
    return { spent: doubleAbove(total), exact: write(total) };
  }

  #known(collection) {
    const known = this.#terms.collections.get(collection.fingerprint);
    if (known === undefined) {
      throw new LedgerError(`${collection.name}: expected a collection that the ledger was made with`);
    }
    return known;
  }

  // The window of the cut time, in which the report is counted.
  #window(collection, timeMs) {
    const cutMs = cutTime(timeMs, collection.precisionMs);
    return { cutMs, startMs: cutTime(cutMs, this.#known(collection).windowMs) };
  }

  // Windows of an earlier configuration may be longer than a period, and count in all they overlap.
  #period(timeMs) {
    if (this.#horizonMs === null) return () => true;
    const start = cutTime(timeMs, this.#horizonMs);
    return (startMs, windowMs) => startMs + windowMs > start && startMs < start + this.#horizonMs;
  }

  #checkRound({ name, fingerprint, words }, startMs) {
    const endMs = startMs + this.#known({ name, fingerprint }).windowMs;
    if (words?.round != null && (words.startMs !== startMs || words.endMs !== endMs)) {
      throw new LedgerError(`${name}: expected a time in the window of round ${words.round}`);
    }
  }

  #charge(state, { name, fingerprint }, startMs) {
    const { windowMs, loss } = this.#known({ name, fingerprint });
    const epoch = epochWith(state, { fingerprint }, startMs);
    if (epoch !== undefined && isCharged(state, epoch, this.#period(startMs))) return;
    for (const isInside of this.#stretches(state, startMs)) {
      const spent = spentOf(state, isInside);
      if (isAbove(sum([spent, loss]), this.#terms.budget)) {
        const [before, asked, allowed] = [spent, loss, this.#terms.budget].map(write);
        const horizonMs = this.#horizonMs;
        const isWhole = horizonMs !== null && this.#terms.spread !== "rolling";
        const nextMs = isWhole ? cutTime(startMs, horizonMs) + horizonMs : null;
        throw new BudgetError(name, { spent: before, asked, allowed, horizonMs, nextMs });
      }
    }
    state.specs[fingerprint] ??= { name, windowMs, loss: write(loss) };
  }

  // The time spans in which a new report counts: its period, or, if the spread is rolling, every span
  // as long as a period that holds the start of its window, also with charges under another secret.
  #stretches(state, startMs) {
    if (this.#terms.spread !== "rolling") return [this.#period(startMs)];
    const horizonMs = this.#horizonMs;
    const firsts = state.windows
      .map((window) => window.startMs)
      .filter((start) => start > startMs - horizonMs && start < startMs);
    // Longer windows, of an earlier configuration, count in all spans that they overlap.
    return [startMs - horizonMs + 1, startMs, ...new Set(firsts)].map(
      (first) => (start, windowMs) =>
        start < first + horizonMs && start + (horizonMs % windowMs === 0 ? 1 : windowMs) > first,
    );
  }

  async #read() {
    const state = readState(await this.#storage.getItem(this.#place), this.#place);
    if (Object.keys(state.specs).length === 0) checkBudget(this.#terms);
    for (const [fingerprint, { windowMs }] of this.#terms.collections) {
      const before = state.specs[fingerprint];
      if (before !== undefined && before.windowMs !== windowMs) {
        throw new LedgerError(`${before.name}: expected windows of ${before.windowMs} ms, as before`);
      }
    }
    return state;
  }

  async #write(state) {
    await this.#storage.setItem(this.#place, JSON.stringify(state));
  }

  // Runs one operation at a time, among the ledgers here that share the storage and, by its lock, all
  // others.
  #alone(run) {
    const lock = lockOf(this.#storage);
    const locked = () => lock(this.#place, run);
    const turn = (last.get(this.#storage) ?? Promise.resolve()).then(locked);
    last.set(this.#storage, turn.catch(() => {}));
    return turn;
  }
}

// Uploads a ledger's report for the window of a time, by default of now. Resolves to false, and uploads
// nothing, if the report has arrived before, or the ledger spreads its budget over other windows.
// After an error or a reload, the next call sends the same bytes under the same key.
export async function postOnce(url, collection, label, { ledger, timeMs, ...options }) {
  let released;
  try {
    released = await ledger.release(collection, label, { timeMs });
  } catch (error) {
    if (error instanceof SkippedError) return false;
    throw error;
  }
  const { frame, key, startMs, sent } = released;
  if (sent) return false;
  await post(url, frame, { ...options, key });
  await ledger.markSent(collection, startMs);
  return true;
}

// The token of the ledger's device, whose secret is drawn on first use.
async function tokensOf(state, collection, cutMs) {
  if (collection.oneReport === null) return undefined;
  state.secret ??= toText(deviceSecret());
  return [await collection.token(toBytes(state.secret), cutMs)];
}

function given({ frame, key, startMs, sent }, fresh) {
  return { frame: toBytes(frame), key, startMs, fresh, sent };
}
