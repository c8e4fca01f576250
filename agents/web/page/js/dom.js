// Elements of the page. Labels come from the configuration, and only become text.

/** @param {string} id @returns {HTMLElement} */
export function element(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element ${id}`);
  return found;
}

/** @param {string} id */
export const select = (id) => /** @type {HTMLSelectElement} */ (element(id));

/**
 * Make an element; `className`, `hidden` and so on are properties, names with a dash attributes.
 *
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, string | number | boolean>} properties
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function make(tag, properties, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role") made.setAttribute(name, String(value));
    else Object.assign(made, { [name]: value });
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/**
 * Fill a list of definitions with names and what is said of each; null leaves one out.
 *
 * @param {string} id
 * @param {(Child[] | null)[]} pairs
 */
export function fillPairs(id, pairs) {
  element(id).replaceChildren(
    ...pairs.flatMap((one) => {
      if (!one) return [];
      const [name, ...said] = one;
      return make("div", {}, make("dt", {}, name), make("dd", {}, ...said));
    }),
  );
}

/**
 * Set an element's text only if it changes: otherwise screen readers would announce it again.
 *
 * @param {HTMLElement} where
 * @param {string} text
 */
export function say(where, text) {
  if (where.textContent !== text) where.textContent = text;
}

/**
 * Replace the options of a list and keep what was chosen, unless it is gone.
 *
 * @param {HTMLSelectElement} list
 * @param {string[][]} options Values and texts.
 * @param {string} wanted Chosen if it is among them.
 */
export function offer(list, options, wanted) {
  const before = [...list.options].map((option) => `${option.value}\n${option.text}`).join("\n\n");
  const after = options.map(([value, text]) => `${value}\n${text}`).join("\n\n");
  if (before !== after) {
    list.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
  }
  list.value = options.some(([value]) => value === wanted) ? wanted : (options[0]?.[0] ?? "");
}

/**
 * A readable number, with the exact one for machines and, by `tellExact`, on hover.
 *
 * @param {string} text
 * @param {number | null | undefined} exact
 */
export function figure(text, exact) {
  if (exact === null || exact === undefined) return make("span", {}, text);
  return make("data", { value: String(exact) }, text);
}

/**
 * Tell the exact number of a figure that is pointed at. Titles of all figures would have the style of
 * each computed again whenever it changes.
 *
 * @param {PointerEvent} event
 */
export function tellExact({ target }) {
  if (target instanceof HTMLDataElement) target.title = target.value;
}
