// Each partition's progress, what holds windows open and what would close them, what is rejected.

import { bar, scaleOf } from "../bars.js";
import { element, make, say } from "../dom.js";
import {
  ageText,
  clockText,
  countText,
  durationText,
  spanText,
  zonedText,
  zoneOf,
} from "../format.js";
import { nextOf, pastOf, problemWord, waitOf, waitText } from "../health.js";
import { nowMs } from "../shell/clock.js";
import { fillTable, number } from "../table.js";

/** @type {Record<string, [string, string]>} What arrived, and what to look at. */
const REASONS = {
  undecodable: ["an invalid frame", "who else writes to the topic"],
  fingerprint: ["a frame of another specification", "the devices' configuration"],
  range: ["a report that no value can produce", "the device's own code"],
  future: ["a time later than its arrival", "the device's clock; who forges times"],
  precision: ["a time that is not cut", "the device's own code"],
  time: ["a time before year 1 or after 9999", "the unit: epoch milliseconds"],
  partition: ["a token of another partition", "producers that choose partitions themselves"],
  repeated: ["a second report of a device in a window", "nothing: it is expected"],
  crowded: ["a token that its window has no room for", "more partitions, or a shorter grace"],
};

/** @type {View} */
export const healthView = { id: "health", fits: () => true, update };

/** @param {Shown} shown */
async function update(shown) {
  const { collection, windows, status } = shown;
  const wait = waitOf(collection, windows, status);
  say(element("health-sum"), sumText(shown, wait));
  element("health-sum").classList.toggle("alarm", wait !== null || status.problems.length > 0);
  const newest = windows.findLast(({ final }) => final);
  const next = nextOf(collection, windows);
  const line = next?.due ?? (newest ? Date.parse(newest.window.end) : 0);
  const deleted = status.lost_offsets
    ? ` ${countText(status.lost_offsets)} messages were deleted before they were read.`
    : "";
  const others = status.other_sizes
    .map(
      (size) =>
        ` Windows of ${size}, from before a change of size, are not shown here:` +
        ` ldpstream finals ${collection.name} --size '${size}'.`,
    )
    .join("");
  say(
    element("health-note"),
    next
      ? `The line is ${zonedText(line)}: every partition has to pass it before ` +
          `${spanText(next.window)} becomes final. Reports of other partitions are counted meanwhile.${deleted}${others}`
      : `The line is the end of the newest final window, ${zonedText(line)}.${deleted}${others}`,
  );
  drawPartitions(status.partitions, line, wait);
  drawRelease(shown, wait);
  drawReasons(status);
  return null;
}

/** @param {Shown} shown @param {Wait | null} wait */
function sumText({ collection, windows, status }, wait) {
  if (status.problems.length) return `${problemWord(status)}: ${status.problems.join(" ")}`;
  if (wait) return `No window can close: ${collection.name} ${waitText(wait, status)}`;
  const held = status.partitions.find((one) => one.wait !== null);
  if (held) {
    return `No window can close: ${collection.name} waits for partition ${held.partition}: ${held.wait}.`;
  }
  const next = nextOf(collection, windows);
  if (!next) return "All windows are final.";
  const close = `The next window, ${spanText(next.window)}, becomes final`;
  const past = pastOf(collection, status);
  if (past !== null) {
    const newest = `the newest is of ${zonedText(past)}, ${ageText(nowMs() - past)} ago`;
    return `${close} once reports of ${zonedText(next.due)} or later arrive: ${newest}.`;
  }
  return nowMs() < next.due ? `${close} at ${zonedText(next.due)}.` : `${close} now.`;
}

/**
 * Bars start at the line that all partitions must pass; those behind extend to the left.
 *
 * @param {PartitionStatus[]} partitions
 * @param {number} line
 * @param {Wait | null} wait
 */
function drawPartitions(partitions, line, wait) {
  const ahead = partitions.map(({ watermark }) => ({
    share: watermark === null ? null : Date.parse(watermark) - line,
    low: null,
    high: null,
  }));
  const scale = scaleOf(ahead);
  fillTable(
    "partition-rows",
    [
      { title: "partition", kind: "name" },
      { title: `reached, ${zoneOf()}`, kind: "state" },
      { title: "behind or ahead", kind: "chart" },
      { title: "to read" },
      { title: "counted" },
      { title: "late" },
      { title: "state", kind: "state" },
    ],
    partitions.map((one, place) => {
      const drawn = bar(ahead[place], scale, true);
      const behind = wait?.behind.includes(one);
      return [
        `partition ${one.partition}`,
        one.watermark === null ? "nothing yet" : clockText(one.watermark),
        behind ? { ...drawn, className: `${drawn.className} behind` } : drawn,
        one.lag === null ? "–" : number(countText(one.lag), one.lag),
        number(countText(one.counted), one.counted),
        number(countText(one.late), one.late),
        stateText(one, behind),
      ];
    }),
  );
}

/** @param {PartitionStatus} partition @param {boolean} [behind] */
function stateText({ idle, owned }, behind) {
  const said = [behind && "waited for", idle && "idle", !owned && "another worker's"];
  const text = said.filter(Boolean).join(", ");
  return behind ? make("span", { className: "alarm" }, text) : text;
}

/** @param {Shown} shown @param {Wait | null} wait */
function drawRelease({ collection }, wait) {
  element("release").hidden = !wait;
  if (!wait) return;
  const { idle_ms } = collection.window;
  const said = wait.behind.map(({ partition, lag, wait: reason }) => {
    const asked = `A report of ${zonedText(wait.due)} or later in partition ${partition}.`;
    if (reason !== null) return `${asked} Now ${reason}.`;
    if (lag === null) return `${asked} Only its worker knows what is left to read.`;
    return lag
      ? `${asked} ${countText(lag)} messages are left to read there.`
      : `${asked} Everything there has been read: nobody writes to it.`;
  });
  said.push(
    idle_ms === null
      ? "Waiting does not help: idle is off, so a silent partition holds windows open for ever."
      : `Waiting: after ${durationText(idle_ms)} without a report that counts a partition is idle, and follows the others.`,
  );
  element("releases").replaceChildren(...said.map((one) => make("li", {}, one)));
  say(element("by-hand"), `ldpstream close ${collection.name} --until ${wait.window.end}`);
}

/** @param {Status} status */
function drawReasons({ partitions }) {
  /** @type {Map<string, number>} */
  const sums = new Map();
  for (const { rejected } of partitions) {
    for (const [reason, count] of Object.entries(rejected)) {
      sums.set(reason, (sums.get(reason) ?? 0) + count);
    }
  }
  element("refusals").hidden = sums.size === 0;
  fillTable(
    "reason-rows",
    [
      { title: "reason", kind: "name" },
      { title: "so far" },
      { title: "what came", kind: "words" },
      { title: "look at", kind: "words" },
    ],
    [...sums]
      .sort(([, a], [, b]) => b - a)
      .map(([reason, count]) => [
        reason,
        number(countText(count), count),
        ...(REASONS[reason] ?? ["", ""]),
      ]),
  );
}
