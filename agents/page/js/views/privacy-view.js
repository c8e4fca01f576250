// What the policy promises, what leaves in the clear, and what forged reports can do.

import { ask, estimatePath } from "../api.js";
import { element, figure, make, say } from "../dom.js";
import { countText, durationText, tickText } from "../format.js";

/** @typedef {import("../types.js").Collection} Collection */
/** @typedef {import("../types.js").Estimate} Estimate */
/** @typedef {import("../types.js").Shown} Shown */

/** @type {import("../types.js").View} */
export const privacyView = { id: "privacy", fits: () => true, update };

/**
 * @param {Shown} shown
 * @param {() => boolean} current
 * @returns {Promise<Estimate>}
 */
async function update({ collection, window, method }, current) {
  const path = estimatePath(collection.name, window.window, [["method", method]]);
  /** @type {Estimate} */
  const estimate = await ask(path);
  if (current()) {
    drawPrivacy(collection);
    drawForgery(estimate);
  }
  return estimate;
}

/**
 * @param {string} id
 * @param {string[]} sentences
 */
function list(id, sentences) {
  element(id).replaceChildren(...sentences.map((sentence) => make("li", {}, sentence)));
}

/** @param {Collection} collection */
export function drawPrivacy(collection) {
  const { privacy, window } = collection;
  const [first, ...others] = privacy.protected;
  say(
    element("privacy-sum"),
    `${first}${privacy.unprotected === null ? "" : " Not all values are protected: see below."}`,
  );
  list("protected", others);
  element("unprotected-part").hidden = privacy.unprotected === null;
  say(element("unprotected"), privacy.unprotected ?? "");
  list("disclosed", privacy.disclosed);
  const least = collection.minimum_block;
  const ofBlock = least > 1 ? `, of a block below ${least.toLocaleString("en")}` : "";
  /** @type {[string, string][]} */
  const facts = [
    ["Mechanism", collection.mechanism],
    ["Fingerprint", collection.fingerprint],
    ["Values", collection.values.toLocaleString("en")],
    [
      "Windows",
      window.hop_ms === window.size_ms
        ? durationText(window.size_ms)
        : `${durationText(window.size_ms)}, every ${durationText(window.hop_ms)}`,
    ],
    ["Grace for late reports", window.grace_ms ? durationText(window.grace_ms) : "none"],
    ["Precision of times", durationText(collection.precision_ms)],
    [
      "Nothing is shown below",
      `${collection.minimum.toLocaleString("en")} ${collection.minimum === 1 ? "report" : "reports"}${ofBlock}`,
    ],
    ["Topic", collection.topic],
  ];
  element("settings").replaceChildren(
    ...facts.map(([name, text]) => make("div", {}, make("dt", {}, name), make("dd", {}, text))),
  );
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
          figure(countText(forged), forged),
          forged === 1 ? " forged report." : " forged reports.",
        ]),
  );
}
