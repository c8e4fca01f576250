// What the policy promises, who sees what, and what forged reports can do.

import { ask, estimatePath } from "../api.js";
import { element, figure, fillPairs, make, say } from "../dom.js";
import { countText, durationText, forgedText, tickText, windowText } from "../format.js";
import { fillTable } from "../table.js";
import { drawProof } from "./proof.js";
import { drawSpent } from "./spent.js";

/** @typedef {["clear" | "partly" | "never", string]} Seen */

let drawn = "";

/** @type {View} */
export const privacyView = { id: "privacy", fits: () => true, update };

/** @param {Shown} shown @param {() => boolean} current @returns {Promise<Estimate>} */
async function update({ collection, window, method }, current) {
  const path = estimatePath(collection.name, window.window, { method });
  /** @type {Estimate} */
  const estimate = await ask(path);
  if (current()) {
    drawPrivacy(collection);
    drawForgery(estimate);
  }
  return estimate;
}

/** @param {Collection} collection Drawn again only if its configuration is another. */
export function drawPrivacy(collection) {
  drawProof(collection);
  const key = JSON.stringify(collection);
  if (key === drawn) return;
  drawn = key;
  const { privacy, window } = collection;
  drawSpent(collection);
  const [first, ...others] = privacy.protected;
  say(
    element("privacy-sum"),
    `${first.replace(/:$/, ".")}${privacy.unprotected === null ? "" : " Not all values are protected: see below."}`,
  );
  element("protected").replaceChildren(...others.map((sentence) => make("li", {}, sentence)));
  element("unprotected-part").hidden = privacy.unprotected === null;
  say(element("unprotected"), privacy.unprotected ?? "");
  drawSeen(collection);
  fillPairs("settings", [
    ["Values", countText(collection.values)],
    ["Windows", windowText(window)],
    ["Grace for late reports", window.grace_ms ? durationText(window.grace_ms) : "none"],
    ["Precision of times", durationText(collection.precision_ms)],
    ["Topic", collection.topic],
  ]);
}

/**
 * What a report tells, and what is left of it for a topic's readers, for workers, and for readers of
 * documents.
 *
 * @param {Collection} collection
 */
function drawSeen({ privacy, minimum, attributes = [], ...collection }) {
  /** @type {Seen} */
  const clear = ["clear", "in the clear"];
  /** @type {Seen} */
  const randomized = ["partly", `randomized, ε\u00a0${privacy.epsilon}`];
  /** @type {Seen} */
  const messages = ["clear", "time and size of messages"];
  const all = attributes.length ? " about all attributes" : "";
  const least = minimum > 1 ? `of ${countText(minimum)} or more reports${all}` : "however small";
  /** @type {[string, ...Seen[]][]} */
  const rows = [
    ["the value", randomized, randomized, randomized, ["partly", `in sums, ${least}`]],
    ...privacy.disclosed.map((what) => {
      const taking = what.startsWith("taking part");
      const read = readOf(what, collection);
      return /** @type {[string, ...Seen[]]} */ (
        taking
          ? [what, ["clear", "yes"], messages, messages, read]
          : [what, clear, clear, clear, read]
      );
    }),
    [
      "which device or account sent it",
      ["never", "not in a report"],
      ["partly", "only who connects"],
      ["never", "no"],
      ["never", "no"],
    ],
  ];
  fillTable(
    "seen-rows",
    [
      { title: "what", kind: "name" },
      { title: "leaves the device", kind: "words" },
      { title: "topic, broker, gateway", kind: "words" },
      { title: "worker", kind: "words" },
      { title: "documents, API, this page", kind: "words" },
    ],
    rows.map(([what, ...seen]) => [
      what,
      ...seen.map(([how, text]) => make("span", { className: `seen ${how}` }, text)),
    ]),
  );
}

/**
 * What readers of documents see of something that reports disclose.
 *
 * @param {string} what
 * @param {Pick<Collection, "minimum_block" | "window">} collection
 * @returns {Seen}
 */
function readOf(what, { minimum_block, window }) {
  if (what.startsWith("the event time")) {
    return ["partly", `counts per ${durationText(window.pane_ms)}`];
  }
  if (what.startsWith("taking part")) return ["partly", "exact counts"];
  if (what.startsWith("a token")) return ["never", "no"];
  if (what.startsWith("which reports")) return ["partly", "only sums over them"];
  return minimum_block > 1
    ? ["partly", `in sums, of ${countText(minimum_block)} or more reports`]
    : ["clear", "in sums, however small"];
}

/** @param {Estimate} estimate */
function drawForgery({ influence = null, forged = null, withheld }) {
  const where = element("forgery");
  if (withheld || influence === null) {
    say(where, "Not known for this window, which has no estimates.");
    return;
  }
  where.replaceChildren(
    "One forged report moves a listed share by at most ",
    figure(tickText(100 * influence, "", 2), influence),
    " percentage points in this window; several add up. ",
    ...(forged === null
      ? []
      : [
          "The share that is moved most easily leaves its bounds with ",
          figure(forgedText(forged), forged),
          ".",
        ]),
  );
}
