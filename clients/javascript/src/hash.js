// SHA-256 by WebCrypto, in hexadecimal.

import { webCrypto } from "./entropy.js";
import { SpecError } from "./errors.js";

export async function sha256(bytes) {
  if (webCrypto?.subtle === undefined) {
    throw new SpecError("crypto.subtle", "WebCrypto: pages need https or localhost");
  }
  return hex(new Uint8Array(await webCrypto.subtle.digest("SHA-256", bytes)));
}

export function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export async function sha256OfText(text) {
  return sha256(new TextEncoder().encode(text));
}

// The SHA-256 of integers as little-endian i32, which is the digest of blocks and sensitive values.
export async function sha256OfNumbers(numbers) {
  const view = new DataView(new ArrayBuffer(4 * numbers.length));
  numbers.forEach((number, i) => view.setInt32(4 * i, number, true));
  return sha256(view.buffer);
}
