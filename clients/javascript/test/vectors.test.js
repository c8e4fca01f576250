// The vectors (docs/vectors.md): the same words give the same reports and the same frames.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  Collection,
  deviceSecret,
  SUPPORTED,
  SpecError,
  ValueOutsideDomainError,
} from "../index.js";
import { webCrypto } from "../src/entropy.js";
import { makeToken, partitionOf } from "../src/token.js";
import { DEVICES, Words, hex, read } from "./shared.js";

const TOKENS = read("tokens.json");
const SPECS = new Map(read("specs.json").map((vector) => [vector.name, vector]));

for (const vector of DEVICES) {
  test(`reports and frame: ${vector.name}`, async () => {
    const collection = await Collection.load(vector.document);
    const entropy = new Words(vector.words);
    const reports = collection.privatize(vector.labels, { entropy });
    assert.deepEqual(reports.map(hex), vector.reports);
    assert.equal(entropy.left.length, 0);
    assert.equal(hex(collection.frameReports(reports, vector.times_ms)), vector.frame);
    const again = new Words(vector.words);
    const frame = collection.frame(vector.labels, { timesMs: vector.times_ms, entropy: again });
    assert.equal(hex(frame), vector.frame);
  });
}

test("where nobody passes words, all are the platform's", async (context) => {
  for (const vector of DEVICES) {
    const collection = await Collection.load(vector.document);
    const entropy = new Words(vector.words);
    const given = context.mock.method(webCrypto, "getRandomValues", (array) => {
      array.set(entropy.words(array.length));
      return array;
    });
    assert.deepEqual(collection.privatize(vector.labels).map(hex), vector.reports, vector.name);
    assert.equal(entropy.left.length, 0);
    given.mock.restore();
  }
});

for (const vector of TOKENS.tokens) {
  test(`token of ${vector.start_ms} under ${vector.secret.slice(0, 8)}`, async () => {
    const fingerprint = Uint8Array.from(Buffer.from(vector.fingerprint, "hex"));
    const secret = Uint8Array.from(Buffer.from(vector.secret, "hex"));
    const token = await makeToken(secret, fingerprint, vector.time_ms, vector.window_ms);
    assert.equal(hex(token), vector.token);
    assert.equal(partitionOf(token, vector.partitions), vector.partition);
  });
}

for (const vector of TOKENS.devices) {
  test(`tokens and frame: ${vector.name}`, async () => {
    const collection = await Collection.load(vector.document);
    const tokens = await Promise.all(
      vector.secrets.map((secret, i) =>
        collection.token(Uint8Array.from(Buffer.from(secret, "hex")), vector.times_ms[i]),
      ),
    );
    assert.deepEqual(tokens.map(hex), vector.tokens);
    const [entropy, timesMs] = [new Words(vector.words), vector.times_ms];
    assert.equal(hex(collection.frame(vector.labels, { timesMs, entropy, tokens })), vector.frame);
    assert.equal(entropy.left.length, 0);
    assert.throws(() => collection.frame(vector.labels, { timesMs }), RangeError);
    const old = { ...JSON.parse(vector.document.canonical), version: 1 };
    await assert.rejects(Collection.load({ canonical: JSON.stringify(old) }), SpecError);
  });
}

test("tokens are for collections with one_report, and secrets are long", async () => {
  const plain = await Collection.load(DEVICES[0].document);
  await assert.rejects(plain.token(deviceSecret(), 0), RangeError);
  const tokens = [new Uint8Array(8)];
  assert.throws(() => plain.frame([DEVICES[0].labels[0]], { tokens }), RangeError);
  const one = await Collection.load(TOKENS.devices[0].document);
  await assert.rejects(one.token(new Uint8Array(15), 0), RangeError);
  assert.equal(deviceSecret().length, 32);
});

// reports.json gives numbers of values, not labels.
function labelOf(domain, value) {
  if (domain.values !== undefined) return domain.values[value];
  const shape = domain.sizes ?? domain.grid ?? [domain.size];
  const label = [];
  let rest = value;
  for (const extent of [...shape].reverse()) {
    label.unshift(rest % extent);
    rest = Math.floor(rest / extent);
  }
  return shape.length === 1 ? label[0] : label;
}

let compared = 0;
for (const vector of read("reports.json")) {
  const device = DEVICES.find(({ name }) => name === vector.spec);
  const spec = device && JSON.parse(device.document.canonical);
  const plain =
    spec?.parameters.prior?.edges === undefined &&
    spec?.domain.weights === undefined &&
    spec?.domain.attributes === undefined && // a record is placed by a draw
    spec?.mechanism !== "matrix"; // whose rows are numbers there
  if (spec === undefined || spec.domain.interval !== undefined || !plain) continue;
  compared += 1;
  test(`reports.json: ${vector.name}`, async () => {
    const collection = await Collection.load(device.document);
    const entropy = new Words(vector.words.flat().join(""));
    const labels = vector.values.map((value) => labelOf(spec.domain, value));
    const reports = collection.privatize(labels, { entropy });
    const expected = vector.reports.map((report) =>
      Array.isArray(report) ? hex(report) : hex(littleEndian(report, collection.reportBytes)),
    );
    assert.deepEqual(reports.map(hex), expected);
    assert.equal(entropy.left.length, 0);
  });
}

test("most of reports.json is compared", () => assert.ok(compared >= 15, `${compared} were`));

function littleEndian(number, bytes) {
  return Array.from({ length: bytes }, (_, i) => Math.floor(number / 256 ** i) % 256);
}

for (const { name, canonical, fingerprint, report_bytes: bytes } of SPECS.values()) {
  test(`spec: ${name}`, async () => {
    const tables = DEVICES.find((device) => device.name === name)?.document.tables;
    const collection = await Collection.load({ canonical, fingerprint, tables });
    assert.equal(collection.fingerprint, fingerprint);
    assert.equal(collection.reportBytes, bytes);
  });
}

test("every mechanism has vectors, and another one is refused by name", async () => {
  const drawn = DEVICES.map(({ document }) => JSON.parse(document.canonical).mechanism);
  assert.deepEqual([...new Set(drawn)].sort(), [...SUPPORTED].sort());
  const canonical = DEVICES[0].document.canonical.replace('"binary"', '"unary"');
  await assert.rejects(Collection.load({ canonical }), /mechanism: expected one of .*, got unary/);
});

test("records are refused at the first bad one, whichever attribute is drawn", async () => {
  const { document, labels } = DEVICES.find(({ name }) => name === "sampled");
  const collection = await Collection.load(document);
  const [good] = labels;
  const bad = { ...good, age: 77 };
  const { answer, ...lacking } = good;
  for (const [records, message] of [
    [[good, bad, lacking], "value at position 1: expected as age an integer in 0..9"],
    [[good, lacking, bad], "value at position 1: expected a record with a value for each of age, district, answer"],
    [[good, answer], "value at position 1: expected a record with a value for each of age, district, answer"],
  ]) {
    assert.throws(() => collection.privatize(records), { message });
  }
});

test("tables of matrix and optimal are refused where they are others, or missing", async () => {
  const changes = {
    "matrix graph": { policy: (text) => text.replace('"1/2"', '"1/3"') },
    "matrix budgets": { policy: (text) => text.replace('"inf"', '"9"') },
    "matrix blocks": { blocks: ([[block, length], ...rest]) => [[block, length + 1], ...rest] },
    "matrix strategy of a file": { strategy: ([row, ...rest]) => [row.map((x) => x + 1), ...rest] },
    "channel file": { channel: (text) => text.replace('"0x', '"0x1') },
  };
  for (const [name, tables] of Object.entries(changes)) {
    const { document } = DEVICES.find((device) => device.name === name);
    const [[table, change]] = Object.entries(tables);
    const altered = change(document.tables[table]);
    assert.notDeepEqual(altered, document.tables[table]);
    for (const given of [{ [table]: altered }, {}]) {
      await assert.rejects(Collection.load({ ...document, tables: given }), (error) => {
        assert.ok(error instanceof SpecError);
        assert.equal(error.path, `tables.${table}`);
        return true;
      });
    }
  }
});

test("a document of another spec is refused, and so are other tables", async () => {
  const { document } = DEVICES.find(({ name }) => name === "listed blocks");
  const other = document.canonical.replace('"epsilon":2.0', '"epsilon":9.0');
  assert.notEqual(other, document.canonical);
  const load = (changed, options) => Collection.load({ ...document, ...changed }, options);
  await assert.rejects(load({ canonical: other }), /fingerprint: expected/);
  await assert.rejects(
    load({ canonical: other, fingerprint: undefined }, { fingerprint: document.fingerprint }),
    /fingerprint: expected/,
  );
  const swapped = document.tables.blocks.map(([block, length]) => [1 - block, length]);
  await assert.rejects(load({ tables: { blocks: swapped } }), /SHA-256/);
  await assert.rejects(load({ tables: { blocks: [[0, 1e9]] } }), /runs/);
  await assert.rejects(load({ tables: {} }), /SHA-256/);
  await load({}, { fingerprint: document.fingerprint });
});

test("a value outside the domain is refused by its place and never repeated", async () => {
  const secrets = { city: [[1, 2], [125, 7]], intervals: [[0.1, 60], [0.1, Number.NaN]] };
  secrets["lip levels"] = [["no", 0.5, 2], ["no", 1.5, 2]];
  secrets["l1-bits public weights"] = [[[0, 0, 7]].flat(), [0, 0, 777]];
  secrets["listed blocks"] = ["bus", "secret place"];
  for (const [name, labels] of Object.entries(secrets)) {
    const collection = await Collection.load(DEVICES.find((d) => d.name === name).document);
    collection.privatize(labels.slice(0, 1));
    assert.throws(
      () => collection.privatize(labels),
      (error) => {
        assert.ok(error instanceof ValueOutsideDomainError);
        assert.equal(error.position, 1);
        assert.doesNotMatch(error.message, /secret|777|1\.5|NaN|125,/);
        return true;
      },
    );
  }
});

test("labels are an array", async () => {
  const collection = await Collection.load(DEVICES[0].document);
  for (const labels of ["no", 3, undefined]) {
    assert.throws(() => collection.frame(labels), { message: /labels in an array/ });
    assert.throws(() => collection.privatize(labels), { message: /labels in an array/ });
  }
});

test("times are whole milliseconds, one for each label", async () => {
  const collection = await Collection.load(DEVICES[0].document);
  assert.throws(() => collection.frame(["no"], { timesMs: [1, 2] }), RangeError);
  assert.throws(() => collection.frame(["no"], { timesMs: [1.5] }), RangeError);
  assert.throws(() => collection.frame([], {}), RangeError);
});

test("draws of the operating system follow the threshold", async () => {
  const collection = await Collection.load(DEVICES.find(({ name }) => name === "binary").document);
  const n = 40_000;
  const ones = collection.privatize(new Array(n).fill("no")).filter(([bit]) => bit === 1).length;
  const p = 0x170c3e5f682bd9b0 / 2 ** 64;
  // Six standard deviations: fails by chance less than twice in 10^9 runs.
  assert.ok(Math.abs(ones - n * p) < 6 * Math.sqrt(n * p * (1 - p)));
});
