// k-ary randomised response inside blocks: the value itself with T / 2^64, else a uniform other one.

import { blockChain } from "../chains.js";
import { bySize, readBlocks, startsOf, thresholdsOf } from "../blocks.js";
import { bernoulliEach, uniformBelowEach } from "../entropy.js";
import { symbols } from "./symbols.js";

export async function randomizedResponse(parameters, size, tables) {
  const blocks = await readBlocks(size, parameters.blocks, tables.blocks);
  const starts = startsOf(blocks.sizes);
  const thresholds = thresholdsOf(blocks, bySize(parameters.thresholds));
  return symbols(size, (values, entropy) => {
    const of = values.map((value) => blocks.ofValue[value]);
    const own = bernoulliEach(
      entropy,
      of.map((block) => thresholds[block]),
    );
    const others = uniformBelowEach(
      entropy,
      of.map((block) => Math.max(blocks.sizes[block] - 1, 1)),
    );
    return values.map((value, i) => {
      const place = blocks.place[value];
      const alone = blocks.sizes[of[i]] === 1;
      const reported = own[i] || alone ? place : others[i] + (others[i] >= place ? 1 : 0);
      return starts[of[i]] + reported;
    });
  }, blockChain({ starts, orders: blocks.sizes }));
}
