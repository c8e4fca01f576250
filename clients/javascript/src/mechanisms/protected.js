// The values that a policy joins by chains of pairs with a finite budget in some direction.

import { readBlocks } from "../blocks.js";
import { SpecError } from "../errors.js";
import { sha256OfText } from "../hash.js";

// Returns the least value to which each value is joined. `policy` is that of the parameters.
export async function joinedValues(policy, size, tables) {
  const label = Array.from({ length: size }, (_, x) => x);
  if (policy.kind === "block") {
    const known = { count: policy.blocks, sha256: policy.sha256 };
    const { ofValue } = await readBlocks(size, known, tables.blocks);
    return label.map((x) => ofValue.indexOf(ofValue[x]));
  }
  // Sensitive values have a budget against every other, and distances are finite.
  const listed = policy.kind === "matrix" || policy.metric === "graph";
  if (!listed) return label.fill(0);
  const text = tables.policy;
  if (typeof text !== "string" || (await sha256OfText(text)) !== policy.sha256) {
    throw new SpecError("tables.policy", "the policy whose SHA-256 the spec holds; one of more than 1 MiB is in no document");
  }
  const content = JSON.parse(text);
  return joined(label, policy.kind === "matrix" ? pairsOf(content) : content[1]);
}

function pairsOf(budgets) {
  return budgets.flatMap((row, x) => row.flatMap((entry, z) => (entry === "inf" ? [] : [[x, z]])));
}

function joined(label, pairs) {
  const root = (x) => {
    let at = x;
    while (label[at] !== at) at = label[at];
    return at;
  };
  for (const [x, z] of pairs) {
    const [a, b] = [root(x), root(z)];
    label[Math.max(a, b)] = Math.min(a, b);
  }
  return label.map(root);
}
