// Hadamard response inside blocks: a position whose sign in the value's row is + with T / 2^64.

import { blockChain } from "../chains.js";
import { readBlocks, startsOf } from "../blocks.js";
import { moveToSign, signOrder } from "./hadamard.js";
import { symbols } from "./symbols.js";

export async function blockHadamard(parameters, size, tables) {
  const threshold = BigInt(parameters.threshold);
  const blocks = await readBlocks(size, parameters.blocks, tables.blocks);
  const orders = blocks.sizes.map((count) => (count === 1 ? 1 : signOrder(count)));
  const starts = startsOf(orders);
  const outputs = orders.reduce((sum, order) => sum + order, 0);
  return symbols(outputs, (values, entropy) => {
    const signs = entropy.words(values.length);
    const positions = entropy.words(values.length);
    return values.map((value, i) => {
      const block = blocks.ofValue[value];
      const row = blocks.sizes[block] === 1 ? 0 : blocks.place[value] + 1;
      const position = Number(positions[i] & BigInt(orders[block] - 1));
      return starts[block] + moveToSign(row, position, row === 0 || signs[i] < threshold);
    });
  }, blockChain({ starts, orders }));
}
