// Which lines are drawn over time: picked by the reader, at most four, and kept in the address.

import { adjust, chosen } from "../choices.js";
import { element, make, offer, say } from "../dom.js";
import { glyph, LOOKS } from "../charts/looks.js";
import { MOST_LINES } from "../series.js";

/** @type {string[]} */
let drawn = [];

/** @param {() => void} changed */
export function startLines(changed) {
  /** @param {string[]} titles */
  const follow = (titles) => {
    adjust({ lines: titles.length ? JSON.stringify(titles) : "" });
    changed();
  };
  const more = /** @type {HTMLSelectElement} */ (element("add-line"));
  more.addEventListener("change", () => {
    const wanted = more.value;
    const full = drawn.length >= MOST_LINES;
    say(
      element("lines-full"),
      full ? `At most ${MOST_LINES} lines are drawn: remove one to add ${wanted}.` : "",
    );
    if (full) more.value = "";
    else follow([...drawn, wanted]);
  });
  element("lines").addEventListener("click", ({ target }) => {
    const line = /** @type {Element} */ (target).closest("button")?.dataset.line;
    if (line === undefined) return;
    if (drawn.length === 1) {
      say(element("lines-full"), "One line stays: pick another one first.");
      return;
    }
    follow(drawn.filter((one) => one !== line));
  });
}

/** @param {string[]} offered @returns {string[]} Those of them that are in the address. */
export const wantedLines = (offered) =>
  titlesIn(chosen("lines"))
    .filter((title) => offered.includes(title))
    .slice(0, MOST_LINES);

/**
 * Draw these from now on: in the address they stay once they are chosen.
 *
 * @param {string[]} titles
 * @param {string[]} offered
 */
export function showLines(titles, offered) {
  drawn = titles;
  const written = JSON.stringify(drawn);
  if (drawn.length && written !== chosen("lines")) adjust({ lines: written });
  element("lines-part").hidden = offered.length === 0;
  const host = element("lines");
  const shown = [...host.children].map((one) => one.getAttribute("data-line"));
  if (shown.join("\n") !== drawn.join("\n")) {
    const focused = host.contains(document.activeElement);
    host.replaceChildren(...drawn.map(chip));
    if (focused) /** @type {HTMLElement | null} */ (host.lastElementChild)?.focus();
    say(element("lines-full"), "");
  }
  const others = offered.filter((title) => !drawn.includes(title));
  const more = /** @type {HTMLSelectElement} */ (element("add-line"));
  const options = others.map((title) => [title, title]);
  offer(more, [["", "+ pick a line"], ...options], "");
  more.disabled = others.length === 0;
}

/** @param {string} title @param {number} place */
function chip(title, place) {
  return make(
    "button",
    {
      type: "button",
      className: LOOKS[place].colour,
      "data-line": title,
      "aria-label": `${title}, remove`,
    },
    glyph(LOOKS[place]),
    make("span", {}, title),
    " ×",
  );
}

/** @param {string} text @returns {string[]} Empty if it is not a list of texts. */
function titlesIn(text) {
  try {
    const titles = JSON.parse(text || "[]");
    return Array.isArray(titles) ? titles.filter((one) => typeof one === "string") : [];
  } catch {
    return [];
  }
}
