// Records: one attribute is shown at a time, as if devices reported only that one.

import { askAbout } from "./api.js";
import { chosen } from "./choices.js";
import { element, offer } from "./dom.js";

/** @typedef {import("./types.js").Collection} Collection */

/**
 * Offer the attributes of a collection, and return it with the domain of the chosen one.
 *
 * @param {Collection} collection
 * @returns {Collection} The collection itself if values are not records.
 */
export function aboutAttribute(collection) {
  const attributes = collection.attributes ?? [];
  const list = /** @type {HTMLSelectElement} */ (element("attribute"));
  element("attribute-part").hidden = attributes.length === 0;
  offer(
    list,
    attributes.map(({ name }) => [name, name]),
    chosen("attribute"),
  );
  const about = attributes.find(({ name }) => name === list.value);
  askAbout(collection.name, about?.name ?? "");
  if (!about) return collection;
  const { name, ...shape } = about;
  return { ...collection, ...shape, attribute: name };
}
