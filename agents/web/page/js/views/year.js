// A year in words, as the worker's certificate says it: one page to print and sign.

import { element, make, say } from "../dom.js";

/** @param {YearInWords | undefined} year Of the certificate; undefined while there is none. */
export function drawYear(year) {
  element("year").hidden = !year;
  if (!year) return;
  say(element("year-title"), year.title);
  say(element("year-about"), year.about);
  const { readers, disclosed, unprotected } = year;
  /** @type {[string, string][]} */
  const said = [
    ...readers.map(({ who, said }) => /** @type {[string, string]} */ ([who, said])),
    ["In the clear with each report", `${disclosed.join("; ")}.`],
    ...(unprotected
      ? [/** @type {[string, string]} */ (["Not protected", `${unprotected}.`])]
      : []),
  ];
  element("year-readers").replaceChildren(
    ...said.map(([who, words]) => make("div", {}, make("dt", {}, who), make("dd", {}, words))),
  );
  say(element("year-limits"), year.limits);
  element("print-year").onclick = () => window.print();
}
