// Records: one attribute is shown at a time, as if devices reported only that one.

import { askAbout } from "./api.js";
import { chosen } from "./choices.js";
import { element, offer, select } from "./dom.js";

/** @typedef {import("./types.js").Collection} Collection */

/**
 * Offer the attributes of a collection, and return it with the domain of the chosen one.
 *
 * @param {Collection} collection
 * @returns {Collection} The collection itself if values are not records.
 */
export function aboutAttribute(collection) {
  const attributes = collection.attributes ?? [];
  const list = select("attribute");
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
  const both = name.split(":").map((one) => attributes.find((other) => other.name === one));
  // The values of a pair are labels of two attributes.
  const parts = both.length > 1 ? both.flatMap((one) => (one ? [one.domain] : [])) : undefined;
  return { ...collection, ...shape, domain: { ...shape.domain, parts }, attribute: name };
}
