// One person's budget ledger: one report a window, the same one whenever it is asked for again, and no
// report beyond the budget. What it protects, and what not: docs/devices.md.

import { SystemEntropy } from "./entropy.js";
import { BudgetError, LedgerError, SkippedError } from "./errors.js";
import { cutTime } from "./frame.js";
import { epochOf } from "./hold.js";
import { epochWith, find, forgotten, isCharged, isOf, spentOf } from "./ledger_charges.js";
import { lockOf, readState, toBytes, toText } from "./ledger_state.js";
import { readTerms } from "./ledger_terms.js";
import { sum } from "./loss.js";
import { doubleAbove, isAbove, write } from "./rational.js";
import { drawnWindows } from "./spread.js";
import { deviceSecret } from "./token.js";
import { post, uploadKey } from "./upload.js";

// Of each storage, what was asked of it last: several ledgers may share one.
const last = new WeakMap();

export class Ledger {
  #storage;
  #place;
  #budget;
  #horizonMs;
  #collections;
  #spread;

  // `storage` is localStorage, a FileStorage (file.js), or anything with getItem and setItem, which
  // may be asynchronous, and lock(place, run), which runs it while nobody else uses the item: only
  // where there are Web Locks it may be without. `place` is the name of the item. `collections` are the ones that may report,
  // each with the length of its windows in milliseconds; `horizonMs` the length of a period, or
  // null: one period for ever. `budget` is read as the decimal or fraction that was written. With
  // `spread` it takes part in some windows of each period only, as many as the budget allows, drawn
  // from its secret; true draws for each period, "rolling" once, so that any stretch as long as a
  // period keeps the budget.
  constructor({
    storage,
    place = "ldpstream.ledger",
    budget,
    horizonMs = null,
    collections,
    spread = false,
  }) {
    const terms = readTerms({ storage, budget, horizonMs, collections, spread });
    this.#storage = storage;
    this.#place = place;
    this.#budget = terms.budget;
    this.#horizonMs = horizonMs;
    this.#collections = terms.collections;
    this.#spread = spread;
  }

  // Resolves to whether the window that holds a time is one of the device's: without spread all are.
  // What was drawn for a period is kept, and stands; a window that is missed is lost.
  async takesPart(collection, { timeMs = Date.now() } = {}) {
    const { startMs } = this.#window(collection, timeMs);
    return this.#alone(async () => this.#isDrawn(await this.#read(), collection, startMs));
  }

  // What part of which windows a window is drawn from: of rounds that find words one of a run; null
  // where all take part.
  #share(collection, startMs) {
    const { windowMs, windows, reports } = this.#known(collection);
    if (collection.words !== null) {
      const { rounds } = collection.words;
      return { windowMs, windows: rounds, reports: 1, firstMs: cutTime(startMs, rounds * windowMs) };
    }
    if (!this.#spread) return null;
    const firstMs = this.#spread === "rolling" ? null : cutTime(startMs, this.#horizonMs);
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

  // Resolves to the report of the window that holds a time, in a frame with the key of its upload: a
  // fresh one, or the one that the window has, whatever the label. It is kept before it is given.
  async release(collection, label, { timeMs = Date.now(), entropy } = {}) {
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
      const report = await this.#draw(state, collection, startMs, { label, entropy });
      const frame = toText(collection.frameReports([report], [cutMs], tokens));
      const window = { fingerprint, startMs, frame, key: uploadKey(), sent: false };
      state.windows.push(window);
      await this.#write(state);
      return given(window, true);
    });
  }

  // The report of a window: with hold it follows from the permanent one of its epoch, which the
  // first label of the epoch draws.
  async #draw(state, collection, startMs, { label, entropy = new SystemEntropy() }) {
    if (collection.hold === null) return collection.privatize([label], { entropy })[0];
    let epoch = epochWith(state, collection, startMs);
    if (epoch === undefined) {
      state.secret ??= toText(deviceSecret());
      const terms = { windows: collection.hold.windows, windowMs: this.#known(collection).windowMs };
      const { fingerprint } = collection;
      const span = await epochOf(toBytes(state.secret), fingerprint, startMs, terms);
      const report = toText(collection.drawPermanent(label, { entropy }));
      epoch = { fingerprint, ...span, report };
      state.held = [...(state.held ?? []), epoch];
    }
    if (epoch.report === null) throw forgotten(collection);
    return collection.hold.send(toBytes(epoch.report), entropy);
  }

  // Resolves to what the window that holds a time has, or to null.
  async kept(collection, { timeMs = Date.now() } = {}) {
    const { startMs } = this.#window(collection, timeMs);
    const before = find(await this.#read(), collection, startMs);
    return before === undefined ? null : given(before, false);
  }

  // Says that a window's report has arrived, so that it need not go again.
  async markSent(collection, startMs) {
    return this.#alone(async () => {
      const state = await this.#read();
      // Also of a window that has been forgotten meanwhile: its report has arrived all the same.
      const window = state.windows.find(isOf(collection, startMs));
      if (window === undefined || window.sent) return;
      window.sent = true;
      await this.#write(state);
    });
  }

  // Drops the reports of windows that have ended by then. They stay charged, and get no second one.
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

  // What the period that holds a time has spent, or, without one, what was spent ever: a number that
  // is not below it, and the exact fraction as a text.
  async spent({ timeMs } = {}) {
    const state = await this.#read();
    const total = spentOf(state, timeMs === undefined ? () => true : this.#period(timeMs));
    return { spent: doubleAbove(total), exact: write(total) };
  }

  #known(collection) {
    const known = this.#collections.get(collection.fingerprint);
    if (known === undefined) {
      throw new LedgerError(`${collection.name}: expected a collection that the ledger was made with`);
    }
    return known;
  }

  // By the cut time: that is the window in which the report is counted.
  #window(collection, timeMs) {
    const cutMs = cutTime(timeMs, collection.precisionMs);
    return { cutMs, startMs: cutTime(cutMs, this.#known(collection).windowMs) };
  }

  // Windows of an earlier configuration may be longer than a period, and count in each they touch.
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
      if (isAbove(sum([spent, loss]), this.#budget)) {
        const [before, asked, allowed] = [spent, loss, this.#budget].map(write);
        throw new BudgetError(name, { spent: before, asked, allowed });
      }
    }
    state.specs[fingerprint] ??= { name, windowMs, loss: write(loss) };
  }

  // What a new report is added up with: its period, or where the spread is rolling every stretch as
  // long as one that its window starts in, whatever was charged, under another secret too.
  #stretches(state, startMs) {
    if (this.#spread !== "rolling") return [this.#period(startMs)];
    const horizonMs = this.#horizonMs;
    const firsts = state.windows
      .map((window) => window.startMs)
      .filter((start) => start > startMs - horizonMs && start < startMs);
    // Longer windows, of an earlier configuration, count in all stretches that they touch.
    return [startMs - horizonMs + 1, startMs, ...new Set(firsts)].map(
      (first) => (start, windowMs) =>
        start < first + horizonMs && start + (horizonMs % windowMs === 0 ? 1 : windowMs) > first,
    );
  }

  async #read() {
    const state = readState(await this.#storage.getItem(this.#place), this.#place);
    for (const [fingerprint, { windowMs }] of this.#collections) {
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

  // One at a time: of all ledgers here that share the storage, and of all others by its lock.
  #alone(run) {
    const lock = lockOf(this.#storage);
    const locked = () => lock(this.#place, run);
    const turn = (last.get(this.#storage) ?? Promise.resolve()).then(locked);
    last.set(this.#storage, turn.catch(() => {}));
    return turn;
  }
}

// Uploads the report that a ledger gives for the window of a time, by default now; resolves to false,
// and uploads nothing, where it has arrived before, or the ledger spreads its budget and the window is
// not the device's. After an error, or a reload, the next call sends
// the same bytes under the same key.
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

// The token of the device whose ledger it is, whose secret is drawn at the first one.
async function tokensOf(state, collection, cutMs) {
  if (collection.oneReport === null) return undefined;
  state.secret ??= toText(deviceSecret());
  return [await collection.token(toBytes(state.secret), cutMs)];
}

function given({ frame, key, startMs, sent }, fresh) {
  return { frame: toBytes(frame), key, startMs, fresh, sent };
}
