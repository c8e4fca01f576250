// The time that a report takes: `node clients/javascript/bench.js` prints, for each mechanism, the
// microseconds per report, drawn one by one and a thousand at a time.

import { readFileSync } from "node:fs";

import { Collection } from "./index.js";

const SECONDS = 0.3;
const VECTORS = new URL("../../tests/vectors/devices.json", import.meta.url);
const SHOWN = [
  ["binary", "binary"], ["block-hadamard", "city"], ["high-low", "high-low"], ["l1-bits", "l1-bits line"],
  ["l1-geometric", "l1-geometric line"], ["lip", "lip levels"],
  ["projective-geometry", "projective-geometry"], ["randomized-response", "randomized-response"],
  ["subset-selection", "subset-selection"], ["tree", "tree"],
];

function microseconds(reports, draw) {
  let done = 0;
  const start = performance.now();
  while (performance.now() - start < 1000 * SECONDS) {
    draw();
    done += reports;
  }
  return (1000 * (performance.now() - start)) / done;
}

const devices = JSON.parse(readFileSync(VECTORS, "utf8"));
console.log("mechanism              values  bytes  us, one by one  us, of 1000");
for (const [id, name] of SHOWN) {
  const { document, labels } = devices.find((device) => device.name === name);
  const collection = await Collection.load(document);
  const many = Array.from({ length: 1000 }, (_, i) => labels[i % labels.length]);
  const single = microseconds(1, () => collection.privatize([labels[0]]));
  const batch = microseconds(1000, () => collection.privatize(many));
  const cells = [String(collection.size).padStart(8), String(collection.reportBytes).padStart(7)];
  console.log(`${id.padEnd(21)}${cells.join("")}${single.toFixed(1).padStart(16)}${batch.toFixed(1).padStart(13)}`);
}
