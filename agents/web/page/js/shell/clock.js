// The worker's time, so that ages do not depend on the clock of whoever looks at the page.

const STEP_MS = 2000;

/** @type {number | null} */
let aheadMs = null; // How far the worker's clock is ahead of the browser's.

/**
 * Note when an answer was made.
 *
 * @param {Response} answer
 */
export function noteDate(answer) {
  const ahead = Date.parse(answer.headers.get("Date") ?? "") - Date.now();
  if (Number.isNaN(ahead)) return;
  // The header is cut to seconds, and the answer was under way: the largest value is the closest.
  // A much smaller one means that one of the two clocks was set.
  if (aheadMs === null || ahead > aheadMs || ahead < aheadMs - STEP_MS) aheadMs = ahead;
}

/** @returns {number} Epoch ms. */
export const nowMs = () => Date.now() + (aheadMs ?? 0);
