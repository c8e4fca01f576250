// What a collection waits for, what it rejects and why, and how old it is what is shown.

import { ask, collectionPath } from "./api.js";
import { element, say } from "./dom.js";
import { ageText, clockText, countText, partText } from "./format.js";

/** @typedef {import("./types.js").Collection} Collection */
/** @typedef {import("./types.js").Status} Status */
/** @typedef {import("./types.js").WindowState} WindowState */

export const MANY_REJECTED = 0.01;

/** @param {string} name @returns {Promise<Status>} */
export const statusOf = (name) => ask(`${collectionPath(name)}/status`);

/**
 * What holds a window open although its time is over; empty where nothing does.
 *
 * @param {Collection} collection
 * @param {WindowState} window
 * @param {Status} status
 */
export function waitsFor({ window: { grace_ms } }, { window, final }, { partitions }) {
  const due = Date.parse(window.end) + grace_ms;
  if (final || Date.now() < due) return "";
  const behind = partitions.filter(
    ({ watermark }) => watermark === null || Date.parse(watermark) < due,
  );
  if (behind.length === 0) return "";
  const oldest = behind.reduce((a, b) => ((a.watermark ?? "") <= (b.watermark ?? "") ? a : b));
  const more = behind.length > 1 ? ` and ${countText(behind.length - 1)} more` : "";
  const which = `partition ${oldest.partition}${more} (of ${countText(partitions.length)})`;
  return oldest.watermark === null
    ? `Waits for ${which}, which has had no report.`
    : `Waits for ${which}: its newest report is of ${clockText(oldest.watermark)} UTC.`;
}

/** @param {Status} status */
export function rejectedPart({ counted, late, rejected }) {
  const all = counted + late + rejected;
  return all ? rejected / all : 0;
}

/** @param {Status} status @returns {string} The share of all messages, and the reasons. */
export function rejectedText(status) {
  /** @type {Record<string, number>} */
  const sums = {};
  for (const { rejected } of status.partitions) {
    for (const [reason, count] of Object.entries(rejected)) {
      sums[reason] = (sums[reason] ?? 0) + count;
    }
  }
  const reasons = Object.entries(sums).sort(([, a], [, b]) => b - a);
  if (reasons.length === 0) return "";
  const said = reasons.map(([reason, count]) => `${reason} ${countText(count)}`).join(", ");
  return `${partText(rejectedPart(status))} of all: ${said}`;
}

/**
 * @param {Collection} collection
 * @param {WindowState} window
 * @param {Status} status
 */
export function drawHealth(collection, window, status) {
  say(element("rejected-words"), rejectedText(status));
  const alarming = rejectedPart(status) >= MANY_REJECTED;
  element("rejected").className = alarming ? "alarm" : "";
  const all = window.n + window.late;
  say(
    element("late-words"),
    window.late && all ? `${partText(window.late / all)} of this window` : "",
  );
  const problems = status.problems.map((one) => `Stopped: ${one}`);
  const waits = waitsFor(collection, window, status);
  const said = [...problems, ...(waits ? [waits] : [])].join(" ");
  say(element("waits"), said);
  element("waits").hidden = said === "";
}

let answered = 0;

/** Note that the worker has answered: what is shown now is of this moment. */
export function noteAnswer() {
  answered = Date.now();
}

/** @returns {string} How old it is what is shown; empty where nothing is. */
export function shownAge() {
  if (!answered) return "";
  const since = new Date(answered).toISOString();
  return ` What is shown is of ${clockText(since)} UTC, ${ageText(Date.now() - answered)} ago.`;
}
