// The user's choices, kept in the URL so that they can be shared and survive a reload.

/** @typedef {"collection" | "attribute" | "window" | "view" | "top" | "method" | "last" | "measure" | "zoom" | "compare" | "lines" | "search" | "sort" | "devices"} Name */

/** @returns {URLSearchParams} */
function kept() {
  return new URLSearchParams(location.hash.slice(1));
}

/** @param {Name} name @returns {string} Empty if nothing is chosen. */
export function chosen(name) {
  return kept().get(name) ?? "";
}

/**
 * Store choices as a step that the browser's Back button undoes.
 *
 * @param {Partial<Record<Name, string>>} choices Empty ones are removed.
 */
export function choose(choices) {
  history.pushState(null, "", addressOf(choices));
}

/** @param {Partial<Record<Name, string>>} choices Stored, but not as a step. */
export function adjust(choices) {
  history.replaceState(null, "", addressOf(choices));
}

/**
 * @param {Partial<Record<Name, string>>} choices Changed; empty ones are removed.
 * @returns {string} The part of the address with all choices.
 */
export function addressOf(choices) {
  const all = kept();
  for (const [name, value] of Object.entries(choices)) {
    if (value) all.set(name, value);
    else all.delete(name);
  }
  return `#${all}`;
}
