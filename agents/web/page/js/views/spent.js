// What a device with a ledger loses by one report, and by all in longer and longer times.

import { element, fillPairs, make, say } from "../dom.js";
import { durationText } from "../format.js";

const MOST_PARTS = 48; // Above it parts are too narrow for gaps.
const FREE = "Nothing here limits how often a device reports: only its own ledger's budget does. ";
const CONFIGURED =
  "This holds where ledgers spread their budget as configured here; no worker can check that. ";
const NUMBER = /^([\d.e+-]+(?: to [\d.e+-]+)?)((?: [a-z].*)?)$/;

/** @param {Collection} collection */
export function drawSpent({ privacy, window, accepted }) {
  const { spent, limit } = privacy;
  const [, number, unit] = NUMBER.exec(privacy.epsilon) ?? [, privacy.epsilon, ""];
  say(element("spent-epsilon"), `ε\u00a0${number}`);
  const pane = durationText(window.pane_ms);
  const often = oftenText(limit, spent[1], pane);
  say(element("spent-often"), `${unit && `${unit},`} a report: ${often}`);
  const parts = limit === "spread" ? (spent[1]?.charges ?? 0) : 0;
  element("spent-bar").hidden = parts === 0;
  if (parts) drawBar(spent[0], spent[1]);
  const rest = spent.slice(parts ? 2 : 0);
  fillPairs(
    "spent",
    rest.map(({ over, loss, factor }) => [
      over,
      grouped(loss),
      make("small", {}, factorText(factor)),
    ]),
  );
  say(
    element("spent-note"),
    spent.length
      ? `At most, for this collection${accepted.length ? "'s newest spec" : ""} alone, between the ` +
          "two protected values that are hidden least, and against whoever has the reports and " +
          `knows that they are one device's. A window here is ${pane}; times may begin inside one.`
      : "Not added up here: the policy has single budgets for too many values.",
  );
  say(
    element("spent-ledger"),
    `${limit === null ? FREE : limit === "spread" ? CONFIGURED : ""}A device with a ledger repeats ` +
      `its report within ${pane} and refuses beyond its budget. What one device has spent is ` +
      "known to that device alone; a device without a ledger has no limit.",
  );
}

/** @param {string} factor As the worker says it, which may be "no limit". */
const factorText = (factor) => (factor === "no limit" ? factor : `factor ${factor}`);

/** @param {string} loss Its whole part in groups of three digits. */
const grouped = (loss) =>
  loss.replace(/^\d+/, (whole) => BigInt(whole).toLocaleString(navigator.language));

/**
 * @param {Collection["privacy"]["limit"]} limit
 * @param {LossOverTime | undefined} next The time after one report.
 * @param {string} pane
 */
function oftenText(limit, next, pane) {
  if (limit === null || !next) return `one in each window of ${pane}`;
  const what = limit === "hold" ? "one draw" : next.charges === 1 ? "one" : `${next.charges}`;
  return `${what} in ${next.over}`;
}

/**
 * The reports of a period, the first of them filled.
 *
 * @param {LossOverTime} one
 * @param {LossOverTime} period
 */
function drawBar(one, period) {
  const parts = element("spent-parts");
  parts.style.setProperty("--part", `${100 / period.charges}%`);
  parts.classList.toggle("many", period.charges > MOST_PARTS);
  say(element("spent-one"), `${one.over}: ${grouped(one.loss)}`);
  say(element("spent-period"), `${period.over}, the budget: ${grouped(period.loss)}`);
  say(element("spent-one-factor"), factorText(one.factor));
  say(element("spent-period-factor"), factorText(period.factor));
}
