// Reads lines of values and writes lines of reports like `ldpstream privatize`, so that
// `ldpstream audit NAME --command "node lines.js NAME.json"` can audit this client. NAME.json is the
// device document that `ldpstream spec NAME` prints.

import { readFileSync } from "node:fs";

import { Collection } from "./index.js";

const document = JSON.parse(readFileSync(process.argv[2], "utf8"));
const collection = await Collection.load(document);
const { collection: name, fingerprint, canonical } = document;
const { domain } = JSON.parse(canonical);
const head = JSON.stringify({ collection: name, fingerprint }).slice(0, -1);

// What the server reads as a number; Number takes an empty text for 0, and hexadecimal digits.
const DECIMAL = /^[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?[ \t]*$/;

function label(line) {
  if (domain.values !== undefined) return line;
  const columns = line.split(",").map((cell) => (DECIMAL.test(cell) ? Number(cell) : NaN));
  return columns.length === 1 ? columns[0] : columns;
}

const values = readFileSync(0, "utf8").split("\n").slice(0, -1).map(label);
const lines = collection
  .privatize(values)
  .map((report) => `${head},"report":"${Buffer.from(report).toString("base64")}"}\n`);
process.stdout.write(lines.join(""));
