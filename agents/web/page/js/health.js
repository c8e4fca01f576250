// What a collection waits for, and how much it rejects.

import { ask, collectionPath } from "./api.js";
import { element, say } from "./dom.js";
import { ageText, countText, partText, zonedText } from "./format.js";
import { nowMs } from "./shell/clock.js";

export const MANY_REJECTED = 0.01;
const LIVE_MS = 600_000; // Reports up to this age count as current.

/** @param {string} name @returns {Promise<Status>} */
export const statusOf = (name) => ask(`${collectionPath(name)}/status`);

/**
 * The newest event time of any partition, epoch ms. Windows go by this time, which in a replay is
 * far from the wall clock.
 *
 * @param {Status} status
 */
const reachedBy = ({ partitions }) =>
  Math.max(
    ...partitions.map(({ watermark }) => (watermark === null ? -Infinity : Date.parse(watermark))),
  );

/**
 * The newest event time if it is far behind the clock: in a replay, or if no reports arrive.
 *
 * @param {Collection} collection
 * @param {Status} status
 * @returns {number | null} Epoch ms.
 */
export function pastOf({ window }, status) {
  const reached = reachedBy(status);
  const usual = Math.max(LIVE_MS, window.size_ms + window.grace_ms);
  return Number.isFinite(reached) && nowMs() - reached > usual ? reached : null;
}

/**
 * The oldest window that some partition holds open while another has passed it, with the time that
 * partitions must reach, and those that have not.
 *
 * @param {Collection} collection
 * @param {WindowState[]} windows Oldest first.
 * @param {Status} status
 * @returns {Wait | null}
 */
export function waitOf(collection, windows, status) {
  const open = nextOf(collection, windows);
  const reached = reachedBy(status);
  if (!open || reached < open.due) return null;
  const all = status.partitions.filter(
    ({ watermark }) => watermark === null || Date.parse(watermark) < open.due,
  );
  // Idle partitions follow the others.
  const awake = all.filter(({ idle }) => !idle);
  const behind = awake.length ? awake : all;
  return behind.length ? { ...open, reached, behind } : null;
}

/**
 * The window that becomes final next, and the time that all partitions must reach before.
 *
 * @param {Collection} collection
 * @param {WindowState[]} windows Oldest first.
 */
export function nextOf({ window: { grace_ms } }, windows) {
  const next = windows.find(({ final }) => !final);
  return next && { window: next.window, due: Date.parse(next.window.end) + grace_ms };
}

/**
 * The partition that is furthest behind.
 *
 * @param {Wait} wait
 * @param {Status} status
 */
export function whichText({ behind }, { partitions }) {
  const more = behind.length > 1 ? ` and ${countText(behind.length - 1)} more` : "";
  return `partition ${oldestOf(behind).partition}${more} (of ${countText(partitions.length)})`;
}

/** @param {PartitionStatus[]} behind */
const oldestOf = (behind) =>
  behind.reduce((a, b) => ((a.watermark ?? "") <= (b.watermark ?? "") ? a : b));

/** @param {Wait} wait @param {Status} status */
export function waitText(wait, status) {
  const { watermark, wait: reason } = oldestOf(wait.behind);
  const said = watermark
    ? `has reached ${zonedText(Date.parse(watermark))}, ${ageText(wait.reached - Date.parse(watermark))} behind the first`
    : "has had no report";
  const why = reason === null ? "" : ` (${reason})`;
  return `waits for ${whichText(wait, status)}, which ${said}${why}.`;
}

/**
 * What a problem means for the collection.
 *
 * @param {Status} status
 */
export function problemWord({ stopped }) {
  return stopped ? "Stopped" : "Problem";
}

/** @param {Status} status */
export function rejectedPart({ counted, late, rejected }) {
  const all = counted + late + rejected;
  return all ? rejected / all : 0;
}

/** @param {Shown} shown @param {string} view */
export function drawHealth({ collection, window, status }, view) {
  const part = rejectedPart(status);
  say(element("rejected-words"), status.rejected ? `${partText(part)} of all` : "");
  element("rejected").className = part >= MANY_REJECTED ? "alarm" : "";
  const all = window.n + window.late;
  say(
    element("late-words"),
    window.late && all ? `${partText(window.late / all)} of this window` : "",
  );
  const wait = waitOf(collection, [window], status);
  const problems = status.problems.map((one) => `${problemWord(status)}: ${one}`);
  const said = [...problems, ...(wait ? [`This window ${waitText(wait, status)}`] : [])].join(" ");
  say(element("waits"), said);
  element("waits").hidden = said === "" || view === "health";
}
