// What is looked at, kept in the address so that it can be shared and survives a reload.

/** @typedef {"collection" | "attribute" | "window" | "view" | "top" | "method" | "last" | "measure" | "zoom" | "compare" | "lines"} Name */

/** @returns {URLSearchParams} */
function kept() {
  return new URLSearchParams(location.hash.slice(1));
}

/**
 * @param {Name} name
 * @returns {string} Empty where nothing is chosen.
 */
export function chosen(name) {
  return kept().get(name) ?? "";
}

/**
 * Keep choices, each as a step that Back takes back.
 *
 * @param {Partial<Record<Name, string>>} choices An empty one is forgotten.
 */
export function choose(choices) {
  history.pushState(null, "", addressOf(choices));
}

/** @param {Partial<Record<Name, string>>} choices Kept, but no step of their own. */
export function adjust(choices) {
  history.replaceState(null, "", addressOf(choices));
}

/** @param {Partial<Record<Name, string>>} choices */
function addressOf(choices) {
  const all = kept();
  for (const [name, value] of Object.entries(choices)) {
    if (value) all.set(name, value);
    else all.delete(name);
  }
  return `#${all}`;
}
