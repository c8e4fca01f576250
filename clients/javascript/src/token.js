// Tokens of collections with one_report: one report for each device and window (docs/wire.md,
// "Tokens").

import { webCrypto } from "./entropy.js";
import { cutTime } from "./frame.js";
import { signer } from "./hash.js";

export const TOKEN_BYTES = 8;
const SECRET_BYTES = 32;

// A fresh secret of a device. Draw it once, keep it where it survives a reload, and send it to nobody.
export function deviceSecret() {
  return webCrypto.getRandomValues(new Uint8Array(SECRET_BYTES));
}

// The token of the window of a cut time.
export async function makeToken(secret, fingerprint, cutMs, windowMs) {
  if (!(secret instanceof Uint8Array) || secret.length < SECRET_BYTES / 2) {
    throw new RangeError(`secret: expected at least ${SECRET_BYTES / 2} bytes`);
  }
  const message = new Uint8Array(fingerprint.length + 8);
  message.set(fingerprint);
  new DataView(message.buffer).setBigInt64(
    fingerprint.length,
    BigInt(cutTime(cutMs, windowMs)),
    true,
  );
  const sign = await signer(secret);
  return new Uint8Array(await sign(message)).slice(0, TOKEN_BYTES);
}

// The partition of reports with a token.
export function partitionOf(token, partitions) {
  return new DataView(token.buffer, token.byteOffset).getUint32(0, true) % partitions;
}
