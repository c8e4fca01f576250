// The mechanisms of this client by permanent id. A mechanism is
// `{privatize(values, entropy) -> Uint8Array[], reportBytes, numbers}`; `numbers` says that reports
// are little-endian numbers, by which frames are sorted. Some also have `known`, from which their loss
// follows.

import { SpecError } from "../errors.js";
import { sizeOf, withPriors } from "../domain.js";
import { largestLoss } from "../loss.js";
import { binary } from "./binary.js";
import { blockHadamard } from "./block_hadamard.js";
import { groups } from "./groups.js";
import { highLow } from "./high_low.js";
import { l1Bits } from "./l1_bits.js";
import { l1Geometric } from "./l1_geometric.js";
import { lip } from "./lip.js";
import { matrix } from "./matrix.js";
import { optimal } from "./optimal.js";
import { projectiveGeometry } from "./projective_geometry.js";
import { publicWeights } from "./public_weights.js";
import { randomizedResponse } from "./randomized_response.js";
import { sampled } from "./sampled.js";
import { subsetSelection } from "./subset_selection.js";
import { tree } from "./tree.js";

const BUILDERS = new Map([
  ["binary", binary],
  ["block-hadamard", blockHadamard],
  ["groups", groups],
  ["high-low", highLow],
  ["l1-bits", l1Bits],
  ["l1-geometric", l1Geometric],
  ["lip", lip],
  ["matrix", matrix],
  ["optimal", optimal],
  ["projective-geometry", projectiveGeometry],
  ["randomized-response", randomizedResponse],
  ["sampled", sampled],
  ["subset-selection", subsetSelection],
  ["tree", tree],
]);

export const SUPPORTED = Object.freeze([...BUILDERS.keys()]);

// Returns the mechanism, the domain of the labels that devices give, and a function that returns the
// most that one report loses.
export async function build(id, parameters, values, tables) {
  const builder = BUILDERS.get(id);
  if (builder === undefined) {
    throw new SpecError("mechanism", `one of ${SUPPORTED.join(", ")}, got ${id}`);
  }
  if (id === "sampled") return sampled(parameters, values, tables.attributes ?? {}, build);
  const domain = id === "lip" ? withPriors(values, levelsOf(parameters)) : values;
  const weights = parameters.weights ?? null;
  const size = sizeOf(domain);
  const own = await builder(parameters, weights === null ? size : size / (weights + 1), tables);
  const mechanism = weights === null ? own : publicWeights(own, weights);
  return { mechanism, domain, loss: () => largestLoss(id, parameters, own.known) };
}

function levelsOf({ prior, epsilon }) {
  return { edges: typeof prior === "number" ? null : prior.edges, epsilons: epsilon };
}
