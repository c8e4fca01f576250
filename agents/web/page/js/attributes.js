// Records: one attribute is shown at a time, as if devices reported only that one.

import { askAbout } from "./api.js";
import { chosen } from "./choices.js";
import { element, offer, select } from "./dom.js";

/**
 * A collection or an attribute whose domain has the names that people read.
 *
 * @template {Pick<Collection, "domain" | "value_labels" | "unit" | "axes" | "block_names">} About
 * @param {About} about
 * @returns {About}
 */
export function named(about) {
  const { domain, value_labels, unit, axes, block_names } = about;
  return { ...about, domain: { ...domain, value_labels, unit, axes, block_names } };
}

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
  if (!about) return named(collection);
  const { name, ...shape } = named(about);
  const both = name.split(":").map((one) => attributes.find((other) => other.name === one));
  // The values of a pair are labels of two attributes.
  const parts =
    both.length > 1 ? both.flatMap((one) => (one ? [named(one).domain] : [])) : undefined;
  return { ...collection, ...shape, domain: { ...shape.domain, parts }, attribute: name };
}
