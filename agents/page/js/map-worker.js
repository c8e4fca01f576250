// Asks for all values and reads the answer, megabytes of it, away from the thread that draws.

import { AnswerError, request } from "./api.js";

/** @typedef {{id: number, url: string, headers: Record<string, string>}} Question */
/** @typedef {{share: Float64Array, low: Float64Array, high: Float64Array, influence: Float64Array}} Columns */
/** @typedef {{id: number, status: number, error: string, estimate: any, columns: Columns | null}} Reply */

/**
 * @param {Question} question
 * @returns {Promise<Reply>}
 */
async function answer({ id, url, headers }) {
  try {
    const { distribution = [], ...estimate } = await request(url, headers);
    /** @param {"share" | "low" | "high" | "influence"} name */
    const column = (name) => {
      const numbers = new Float64Array(distribution.length);
      for (let cell = 0; cell < numbers.length; cell += 1)
        numbers[cell] = distribution[cell][name] ?? NaN;
      return numbers;
    };
    const [share, low, high, influence] = [
      column("share"),
      column("low"),
      column("high"),
      column("influence"),
    ];
    return { id, status: 200, error: "", estimate, columns: { share, low, high, influence } };
  } catch (failure) {
    const status = failure instanceof AnswerError ? failure.status : 0;
    return {
      id,
      status,
      error: String(/** @type {Error} */ (failure).message),
      estimate: null,
      columns: null,
    };
  }
}

addEventListener("message", async (event) => {
  const reply = await answer(event.data);
  const columns = reply.columns ? Object.values(reply.columns).map((one) => one.buffer) : [];
  postMessage(reply, { transfer: columns });
});
