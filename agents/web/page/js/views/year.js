// A year in words, as the worker's certificate says it: one page to print and sign.

import { element, fillPairs, say } from "../dom.js";

/** @param {YearInWords | undefined} year Of the certificate; undefined while there is none. */
export function drawYear(year) {
  element("year").hidden = !year;
  if (!year) return;
  say(element("year-title"), year.title);
  say(element("year-about"), year.about);
  const { readers, disclosed, unprotected } = year;
  fillPairs("year-readers", [
    ...readers.map(({ who, said }) => [who, said]),
    ["In the clear with each report", `${disclosed.join("; ")}.`],
    unprotected ? ["Not protected", `${unprotected}.`] : null,
  ]);
  say(element("year-limits"), year.limits);
  element("print-year").onclick = () => window.print();
}
