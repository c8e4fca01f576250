// What changed between the two spans that are compared, in one panel for all views: what is told, by
// how much, that all the rest is not, and what is assumed of the devices.

import { difference, scaleAround, scaleTicks } from "../bars.js";
import { choose, chosen } from "../choices.js";
import { element, offer, say, select } from "../dom.js";
import { confidenceText, countText, zonedSpanText } from "../format.js";
import { fillTable } from "../table.js";
import { changeCell, changesIn, isShown } from "./changes.js";

/** @type {Record<string, string>} What is assumed of the devices of two spans. */
const DEVICES = {
  different: "no device is in both",
  fresh: "devices in both, fresh noise",
  held: "devices in both, same noise",
};

/** @type {Record<string, string>} */
const SAID = {
  different: "all reports of both spans come from different ones",
  fresh: "one may report in both spans, with other noise each time",
  held: "one may send the same noise in both spans, so that errors add up",
};

/** @param {() => void} changed */
export function startCompared(changed) {
  select("devices").addEventListener("change", () => {
    choose({ devices: select("devices").value });
    changed();
  });
}

/** @param {Shown} shown @param {string} view @param {() => boolean} current */
export async function drawCompared({ collection, change }, view, current) {
  const panel = element("compared");
  const answer = await change;
  if (!current()) return;
  panel.hidden = !answer;
  if (!answer) return;
  const { family = 0, told = 0, devices = "fresh" } = answer;
  const promise = document.querySelector(`#${view} .estimates > .promise`);
  if (promise && promise.nextElementSibling !== panel) promise.after(panel);
  const own = chosen("devices") ? "as configured" : DEVICES[devices];
  const other = ["different", DEVICES.different];
  offer(select("devices"), [["", own], other], chosen("devices"));
  const since = zonedSpanText(answer.before.span ?? answer.before.window);
  const rest = countText(family - told);
  const said = told
    ? `${countText(told)} of ${countText(family)} changed since ${since}. ` +
      (family > told ? `No difference is shown for the other ${rest}.` : "")
    : `Since ${since} no difference is shown for any of ${rest}.`;
  say(element("compared-sum"), answer.withheld ? `Nothing is compared: ${answer.reason}.` : said);
  const all = changesIn(answer, collection);
  const [moved, others] = [true, false].map((is) =>
    all.filter((one) => isShown(one.change) === is),
  );
  moved.sort((a, b) => Math.abs(b.change.value) - Math.abs(a.change.value));
  fill("compared-rows", moved);
  fill("compared-rest-rows", others);
  element("compared-rest").hidden = others.length === 0;
  say(
    element("compared-rest-title"),
    `Table of ${countText(others.length)} with no difference shown`,
  );
  say(
    element("compared-note"),
    `Of the ${answer.estimand}, with sampling error: bounds hold with ` +
      `${confidenceText(answer.confidence ?? 0)} confidence for all ${countText(family)} together ` +
      `(method ${answer.method}). Assumed of devices: ${SAID[devices]}. ` +
      "“No difference shown” is no proof that there is none.",
  );
  element("compared-note").hidden = answer.withheld;
}

/** @param {string} id @param {Told[]} all */
function fill(id, all) {
  const scale = scaleAround(all.flatMap(({ unit, change }) => (unit ? [change] : [])));
  element(id).hidden = all.length === 0;
  fillTable(
    id,
    [
      { title: "what", kind: "name" },
      { title: "before" },
      { title: "now" },
      { title: "in points", kind: "difference", ticks: scaleTicks(scale, "", true) },
      { title: "change", kind: "change" },
    ],
    all.map(({ name, was, now, change, textOf, unit }) => [
      name,
      was,
      now,
      unit ? difference(change, scale) : "",
      changeCell(change, textOf, unit),
    ]),
  );
}
