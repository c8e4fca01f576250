// What happened when, as the configuration lists it: marked on the bars of windows and over time.

import { element, make } from "./dom.js";
import { clockText } from "./format.js";

/** @typedef {{time: string, text: string}} Annotation */

/** @param {Collection} collection @param {Span} span @returns {Annotation[]} */
export const annotationsIn = ({ annotations = [] }, { start, end }) =>
  annotations.filter(
    ({ time }) => Date.parse(start) <= Date.parse(time) && Date.parse(time) < Date.parse(end),
  );

/** @param {Annotation[]} annotations As a list, which also screen readers have. */
export function listAnnotations(annotations) {
  const list = element("annotations");
  list.hidden = annotations.length === 0;
  const items = annotations.map(({ time, text }) =>
    make("li", {}, make("span", {}, `◆ ${clockText(time)}`), ` ${text}`),
  );
  list.replaceChildren(...items);
}
