// The state of the current window: how many reports it has, and whether it is final.

import { addressOf } from "./choices.js";
import { element, figure, make, say } from "./dom.js";
import { countText, spanText, zonedSpanText, waitingText } from "./format.js";
import { fillChip, windowStateOf } from "./state.js";
import { forgetProof, isProved } from "./views/proof.js";

/** @param {string} id @param {number | undefined} value */
function tile(id, value) {
  const where = element(id);
  const known = value !== undefined;
  const part = /** @type {HTMLElement} */ (where.closest("div"));
  part.hidden = !known;
  part.classList.toggle("none", value === 0);
  const text = known ? countText(value) : "";
  if (where.textContent !== text) where.replaceChildren(figure(text, value));
}

/** @param {(part: HTMLElement) => boolean} hidden */
function hideEstimates(hidden) {
  for (const part of document.querySelectorAll(".estimates")) {
    /** @type {HTMLElement} */ (part).hidden = hidden(/** @type {HTMLElement} */ (part));
  }
}

/** Hide the numbers, which belong to another collection. */
export function forgetFacts() {
  for (const id of ["facts", "strip-part", "withheld", "lost", "waits", "downloads", "compared"]) {
    element(id).hidden = true;
  }
  forgetProof();
  say(element("forgery"), "Not known yet.");
  hideEstimates(() => true);
}

const NAMED = 5;

/** @param {NonNullable<Estimate["merged"]>} merged */
function mergedText({ blocks, names }) {
  if (!names || names.length > NAMED) return `${countText(blocks)} small blocks`;
  return names.join(", ");
}

/** @param {Shown} shown @param {Estimate | null} estimate */
export function drawFacts(shown, estimate) {
  const { collection, windows, window, compared, status } = shown;
  const final = estimate?.final ?? window.final;
  const n = estimate?.n ?? window.n;
  element("facts").hidden = false;
  const withheld = estimate ? estimate.withheld : n < collection.minimum;
  fillChip(element("state"), windowStateOf(shown, final, withheld));
  const span = estimate?.span ? `, applies to ${spanText(estimate.span)}` : "";
  const merged = estimate?.merged ? `, ${mergedText(estimate.merged)} shown only together` : "";
  const about = estimate?.attribute
    ? `, about ${estimate.attribute} of ${countText(estimate.of ?? n)} reports`
    : "";
  say(
    element("state-words"),
    `${zonedSpanText(window.window)}${final ? "" : ", still open"}${span}${merged}${about}`,
  );
  element("proved").hidden = !isProved(collection);
  tile("n", n);
  tile("late", estimate?.late ?? window.late);
  tile("rejected", status.rejected);
  const { waiting } = estimate ?? {};
  element("withheld").hidden = !withheld && !waiting;
  const least = countText(collection.minimum);
  const why = waiting
    ? waitingText(waiting, collection.minimum)
    : n < collection.minimum
      ? `${countText(n)} of ${least} reports, and nothing is shown for fewer.`
      : `parts of at least ${least} reports have expired.`;
  say(element("withheld"), withheld ? `Withheld: ${why}` : waiting ? `Not shown yet: ${why}` : "");
  const shownLast = windows.findLast((one) => one.final && one.n >= collection.minimum);
  if (withheld && shownLast) {
    const text = `Newest window that is shown: ${zonedSpanText(shownLast.window)}`;
    const link = make("a", { href: addressOf({ window: shownLast.window.start }) }, text);
    element("withheld").append(" ", link);
  }
  const lost = estimate?.lost;
  element("lost").hidden = !lost;
  say(
    element("lost"),
    lost
      ? `Incomplete: up to ${countText(lost.offsets)} messages were deleted before they were read.`
      : "",
  );
  hideEstimates((part) => withheld && !part.closest("#time"));
  const comparison = compared ? `, compared with ${spanText(compared.window)}` : "";
  // Announce only what a reader has to know, not every new number.
  say(
    element("announce"),
    `Window ${zonedSpanText(window.window)} of ${collection.name} is ` +
      `${final ? `final with ${countText(n)} reports` : "open"}${withheld ? ", withheld" : ""}${comparison}.`,
  );
}
