// What is looked at, kept in the address so that it can be shared and survives a reload.

/** @typedef {"collection" | "window" | "view" | "top" | "method" | "last" | "measure"} Name */

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

/** @param {Partial<Record<Name, string>>} choices An empty one is forgotten. */
export function choose(choices) {
  const all = kept();
  for (const [name, value] of Object.entries(choices)) {
    if (value) all.set(name, value);
    else all.delete(name);
  }
  history.replaceState(null, "", `#${all}`);
}
