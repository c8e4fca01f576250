// When to refresh: at each server-sent event, and periodically in any case.
// `fetch` reads the stream, because an EventSource cannot carry a token.

import { authorized, collectionPath } from "./api.js";

const POLL_MS = 2000;
const IDLE_POLL_MS = 15000;
const SILENCE_MS = 45000; // Three heartbeats of the stream.

/**
 * Follow a collection until stopped.
 *
 * @param {string} name
 * @param {() => void} changed Called for every event, and at every poll, while the page is shown.
 * @param {(streaming: boolean) => void} told Called when the stream begins or ends.
 * @returns {() => void} Stops.
 */
export function follow(name, changed, told) {
  const stop = new AbortController();
  let stream = new AbortController();
  let streaming = false;
  let timer = 0;

  const shown = () => document.visibilityState === "visible";
  // A hidden page does not refresh until it is shown again.
  const look = () => {
    if (shown()) changed();
  };
  const poll = () => {
    look();
    timer = window.setTimeout(poll, streaming ? IDLE_POLL_MS : POLL_MS);
  };
  const opened = () => {
    streaming = true;
    told(true);
  };
  const ended = () => {
    if (!streaming) return;
    streaming = false;
    told(false);
    clearTimeout(timer);
    poll();
  };
  const listen = async () => {
    while (!stop.signal.aborted) {
      stream = new AbortController();
      try {
        await untilShown(stop.signal);
        await readEvents(name, stream.signal, opened, look);
      } catch {
        // Whatever ended the stream, polling continues and reports what is wrong.
      }
      if (stop.signal.aborted) return;
      ended();
      if (shown()) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  };
  // Browsers open six connections to a server: the streams of hidden pages would take them all, and
  // the seventh page would never load.
  const change = () => {
    if (!shown()) stream.abort();
    look();
  };

  document.addEventListener("visibilitychange", change, { signal: stop.signal });
  timer = window.setTimeout(poll, POLL_MS);
  void listen();
  return () => {
    stop.abort();
    stream.abort();
    clearTimeout(timer);
  };
}

/**
 * Wait until the page is shown, or until the signal.
 *
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
function untilShown(signal) {
  return new Promise((resolve) => {
    const look = () => {
      if (document.visibilityState === "visible" || signal.aborted) resolve();
    };
    document.addEventListener("visibilitychange", look, { signal });
    signal.addEventListener("abort", look);
    look();
  });
}

/**
 * @param {string} name
 * @param {AbortSignal} signal
 * @param {() => void} opened
 * @param {() => void} changed
 */
async function readEvents(name, signal, opened, changed) {
  const headers = { Accept: "text/event-stream", ...authorized() };
  const answer = await fetch(`${collectionPath(name)}/events`, {
    headers,
    signal,
    cache: "no-store",
  });
  const stream = answer.headers.get("Content-Type")?.startsWith("text/event-stream");
  if (!answer.ok || !stream || !answer.body) {
    await answer.body?.cancel();
    return;
  }
  opened();
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const timer = setTimeout(() => void reader.cancel(), SILENCE_MS);
    const { value, done } = await reader.read().finally(() => clearTimeout(timer));
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    // The event's document is not used: the page fetches it again with the chosen bounds.
    if (lines.some((line) => line.startsWith("event:"))) changed();
  }
}
