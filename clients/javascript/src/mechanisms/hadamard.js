// Sylvester's matrix H[r, p] = (-1)^popcount(r AND p); rows and positions are below 2^31.

import { bitLength } from "../entropy.js";

// The least power of two above `rows`.
export function signOrder(rows) {
  return 2 ** bitLength(rows);
}

// The position, moved by the row's lowest set bit if H[row, position] lacks the wanted sign.
export function moveToSign(row, position, wantPositive) {
  return isPositive(row, position) === wantPositive ? position : position ^ (row & -row);
}

function isPositive(row, position) {
  let bits = row & position;
  let even = true;
  while (bits !== 0) {
    bits &= bits - 1;
    even = !even;
  }
  return even;
}
