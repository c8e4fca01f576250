// SHA-256 and HMAC by WebCrypto, and bytes as hexadecimal digits.

import { webCrypto } from "./entropy.js";
import { SpecError } from "./errors.js";

export async function sha256(bytes) {
  return hex(new Uint8Array(await subtle().digest("SHA-256", bytes)));
}

// Resolves to a function that resolves to the HMAC-SHA-256 of bytes.
export async function signer(secret) {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await subtle().importKey("raw", secret, algorithm, false, ["sign"]);
  return (bytes) => subtle().sign("HMAC", key, bytes);
}

function subtle() {
  if (webCrypto?.subtle === undefined) {
    throw new SpecError("crypto.subtle", "WebCrypto: pages need https or localhost");
  }
  return webCrypto.subtle;
}

export function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function fromHex(digits) {
  return Uint8Array.from(digits.match(/../g), (pair) => parseInt(pair, 16));
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
