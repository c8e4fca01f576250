// Uploads to an HTTP gateway (docs/wire.md, "Uploads over HTTP").

import { webCrypto } from "./entropy.js";
import { UploadError } from "./errors.js";
import { hex } from "./hash.js";

export const FRAME_MEDIA_TYPE = "application/vnd.ldpstream.frame";
const KEY_BYTES = 16;
// Timers fire at once if they are set to more than 2^31 ms.
const LONGEST_SECONDS = 86_400;
const RETRIED = new Set([429, 502, 503, 504]);

// A fresh random key for one upload.
export function uploadKey() {
  return hex(webCrypto.getRandomValues(new Uint8Array(KEY_BYTES)));
}

// Posts one frame until the gateway has accepted it; resolves to {accepted}. All attempts send the
// same bytes under the same key, so that they count once. Keep frame and key where they survive a
// reload, and post them again afterwards: drawing another report would spend budget again.
export async function post(
  url,
  frame,
  {
    key = uploadKey(),
    attempts = 8,
    baseMs = 500,
    capMs = 60_000,
    timeoutMs = 30_000,
    fetch = globalThis.fetch,
    sleep = wait,
    random = Math.random,
    signal,
  } = {},
) {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await postOnce(url, frame, { key, timeoutMs, fetch, signal });
    } catch (error) {
      const known = error instanceof UploadError;
      if (!known || !error.retriable || attempt + 1 >= attempts) throw error;
      const backoffMs = random() * Math.min(capMs, baseMs * 2 ** attempt);
      await sleep(Math.max(backoffMs, error.retryAfterMs ?? 0), signal);
    }
  }
}

async function postOnce(url, frame, { key, timeoutMs, fetch, signal }) {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), timeoutMs);
  const forward = () => limit.abort();
  signal?.addEventListener("abort", forward);
  try {
    signal?.throwIfAborted();
    const answer = await fetch(url, {
      method: "POST",
      body: frame,
      headers: { "Content-Type": FRAME_MEDIA_TYPE, "Idempotency-Key": key },
      // Send nothing that would distinguish devices.
      credentials: "omit",
      referrerPolicy: "no-referrer",
      cache: "no-store",
      redirect: "error",
      signal: limit.signal,
    });
    const body = await answer.json().catch(() => null);
    if (answer.ok && Number.isInteger(body?.accepted)) return { accepted: body.accepted };
    throw refused(answer, body);
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof UploadError) throw error;
    const unanswered = { status: null, retriable: true, cause: error };
    throw new UploadError(`no gateway answered at ${url}`, unanswered);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", forward);
  }
}

function refused(answer, body) {
  const detail = typeof body?.detail === "string" ? body.detail : null;
  const seconds = Number(answer.headers.get("Retry-After") ?? NaN);
  // A success without a count was cut off or comes from another server; the same bytes can be sent again.
  const retriable = answer.ok || RETRIED.has(answer.status);
  return new UploadError(`the gateway answered ${answer.status}${detail ? `: ${detail}` : ""}`, {
    status: answer.status,
    retriable,
    detail,
    retryAfterMs: seconds >= 0 ? 1000 * Math.min(seconds, LONGEST_SECONDS) : null,
  });
}

function wait(ms, signal) {
  return new Promise((resolve, reject) => {
    const aborted = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", aborted);
      resolve();
    }, ms);
    signal?.addEventListener("abort", aborted, { once: true });
  });
}
