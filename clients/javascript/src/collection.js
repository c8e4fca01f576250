// A collection as its devices see it, read from a device document (docs/wire.md).

import { moveInside, readDomain, sizeOf } from "./domain.js";
import { SystemEntropy } from "./entropy.js";
import { SpecError } from "./errors.js";
import { parseExactly } from "./exact_json.js";
import { cutTime, encodeFrame } from "./frame.js";
import { fromHex, sha256OfText } from "./hash.js";
import { readHold } from "./hold.js";
import { build } from "./mechanisms/index.js";
import { makeToken, partitionOf, TOKEN_BYTES } from "./token.js";
import { readWords } from "./words.js";

const VERSION = 1;
const TOKEN_VERSION = 2;
const HOLD_VERSION = 3;

export class Collection {
  #domain;
  #mechanism;
  #fingerprint;
  #loss;

  constructor({ name, fingerprint, domain, mechanism, loss, precisionMs, oneReport = null, hold = null, words = null }) {
    this.name = name;
    this.fingerprint = fingerprint;
    this.precisionMs = precisionMs;
    this.oneReport = oneReport;
    this.hold = hold;
    this.words = words;
    this.reportBytes = mechanism.reportBytes;
    this.size = sizeOf(domain);
    this.#fingerprint = fromHex(fingerprint);
    this.#domain = domain;
    this.#mechanism = mechanism;
    this.#loss = loss;
  }

  // Reads a device document and checks all its digests. `fingerprint`, if given, is the one for which
  // this device was built: a document with another spec is refused, whoever served it.
  static async load(document, { fingerprint } = {}) {
    const { canonical, tables = {} } = document ?? {};
    if (typeof canonical !== "string") throw new SpecError("canonical", "a text of JSON");
    const found = (await sha256OfText(canonical)).slice(0, 16);
    for (const expected of [document.fingerprint, fingerprint]) {
      if (expected !== undefined && expected !== found) {
        throw new SpecError("fingerprint", `${expected}, got a spec with ${found}`);
      }
    }
    const spec = parseExactly(canonical);
    const rule = spec.one_report;
    const tokens = rule === undefined ? VERSION : TOKEN_VERSION;
    const version = spec.hold === undefined ? tokens : HOLD_VERSION;
    if (spec.version !== version) throw new SpecError("version", `${version}, got another`);
    const ofWords = spec.domain.words;
    const values = ofWords ? readWords(ofWords, found, document.round) : readDomain(spec.domain);
    const own = await build(spec.mechanism, spec.parameters, values, tables);
    const { mechanism, domain, loss } = own;
    return new Collection({
      name: spec.collection,
      fingerprint: found,
      domain,
      mechanism,
      loss,
      precisionMs: spec.precision_ms,
      oneReport: rule && { windowMs: rule.window_ms, partitions: rule.partitions },
      words: values.words,
      hold: spec.hold && (await readHold(spec, values, tables, own)),
    });
  }

  // Fetches the device document and loads it.
  static async fetch(url, { fetch = globalThis.fetch, ...options } = {}) {
    const expected = (what, cause) => new SpecError(String(url), what, { cause });
    let answer;
    try {
      answer = await fetch(url, { credentials: "omit", referrerPolicy: "no-referrer" });
    } catch (cause) {
      throw expected("an answer, got none: does a gateway run there, and may this page ask it?", cause);
    }
    if (!answer.ok) throw expected(`a device document, got status ${answer.status}`);
    const document = await answer.json().catch((cause) => {
      throw expected("a device document, got no JSON", cause);
    });
    return Collection.load(document, options);
  }

  // The most that one report loses, as an exact rational `{numerator, denominator}` of BigInts.
  largestLoss() {
    return this.#loss();
  }

  // One charge of a ledger, likewise: for a report, or with hold for an epoch's permanent draw.
  chargedLoss() {
    return this.hold === null ? this.#loss() : this.hold.loss();
  }

  // With hold, draws the permanent report of an epoch whose first value is this label.
  drawPermanent(label, { entropy = new SystemEntropy(), clamp = false } = {}) {
    const inside = clamp ? moveInside(this.#domain, [label]) : [label];
    return this.hold.permanent.privatize(this.#domain.index(inside, entropy), entropy)[0];
  }

  // Randomises labels into reports, one Uint8Array of `reportBytes` each. `clamp` moves numbers outside
  // the domain to its nearest end.
  privatize(labels, { entropy = new SystemEntropy(), clamp = false } = {}) {
    checkArray(labels);
    const inside = clamp ? moveInside(this.#domain, labels) : labels;
    return this.#mechanism.privatize(this.#domain.index(inside, entropy), entropy);
  }

  // With one_report, the token of this device's report in the window of a time.
  async token(secret, timeMs = Date.now()) {
    if (this.oneReport === null) throw new RangeError("expected a collection with one_report");
    const cutMs = cutTime(timeMs, this.precisionMs);
    return makeToken(secret, this.#fingerprint, cutMs, this.oneReport.windowMs);
  }

  // Randomises labels into one frame. `timesMs` are epoch milliseconds, one for each label, by default
  // now; they are cut to the precision. With one_report there is a token for each label, all of one
  // partition.
  frame(labels, { timesMs, entropy, tokens, clamp } = {}) {
    checkArray(labels);
    const now = Date.now();
    const times = timesMs ?? labels.map(() => now);
    this.#checkTokens(labels, tokens);
    return this.frameReports(this.privatize(labels, { entropy, clamp }), times, tokens);
  }

  // Frames reports that `privatize` made, with their times and, with one_report, their tokens.
  frameReports(reports, timesMs, tokens) {
    this.#checkTokens(reports, tokens);
    if (reports.length !== timesMs.length) throw new RangeError("expected one time for each report");
    const entries = reports.map((report, i) => {
      if (report.length !== this.reportBytes) {
        throw new RangeError(`report ${i}: expected ${this.reportBytes} bytes`);
      }
      return { timeMs: cutTime(timesMs[i], this.precisionMs), report, token: tokens?.[i] };
    });
    return encodeFrame(this.#fingerprint, entries, { numbers: this.#mechanism.numbers });
  }

  #checkTokens(reports, tokens) {
    if (this.oneReport === null) {
      if (tokens !== undefined) throw new RangeError("expected no tokens without one_report");
      return;
    }
    const sound = (token) => token instanceof Uint8Array && token.length === TOKEN_BYTES;
    if (tokens?.length !== reports.length || !tokens.every(sound)) {
      throw new RangeError("expected one token for each report, because of one_report");
    }
    const partitions = tokens.map((token) => partitionOf(token, this.oneReport.partitions));
    if (new Set(partitions).size > 1) throw new RangeError("expected tokens of one partition");
  }
}

function checkArray(labels) {
  if (typeof labels?.map !== "function") {
    throw new TypeError("expected labels in an array, such as [label]");
  }
}
