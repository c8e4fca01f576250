// What is shown, to hand on: its address, the document as CSV or JSON, the picture as PNG.

import { askedFirst, download, refusalOf, token } from "../api.js";
import { addressOf } from "../choices.js";
import { element, say } from "../dom.js";
import { periodName } from "../periods.js";
import { cardOf } from "./card.js";
import { CLOSE, onKeys } from "./keys.js";
import { colour } from "../theme.js";
import { csvOf, shownLines } from "../views/time-file.js";

const SAID_MS = 3000;
const MOST_ROWS = 12; // Of a table on a card.

/** @type {Partial<Record<import("../choices.js").Name, string>>} What the address may leave open. */
let here = {};

/** @param {string} text */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Refused, or not offered, as over plain HTTP.
    const field = /** @type {HTMLInputElement} */ (element("address"));
    element("address-part").hidden = false;
    field.value = text;
    field.select();
    return;
  }
  say(element("copied"), "Copied");
  setTimeout(() => say(element("copied"), ""), SAID_MS);
}

/** @returns {string} The address of just this window, also if the page follows the newest. */
const address = () => new URL(addressOf(here), location.href).href;

/** @param {string} name Of a parameter. @param {string} text */
const inPython = (name, text) =>
  /^(top|quantile|simultaneous|areas)$/.test(name) && text !== "all"
    ? text.replace(/^t/, "T")
    : JSON.stringify(text);

/** @type {Record<string, () => string>} What asks for the first document that is shown. */
const COMMANDS = {
  curl: () => {
    const header = token() ? "-H 'Authorization: Bearer TOKEN' " : "";
    return `curl ${header}'${new URL(askedFirst(), location.href).href.replaceAll("'", "%27")}'`;
  },
  python: () => {
    const asked = new URLSearchParams(askedFirst().split("?")[1]);
    const options = [...new Set(asked.keys())].map((name) => {
      const [text, ...more] = asked.getAll(name).map((one) => inPython(name, one));
      const repeated = /^(range|quantile)$/.test(name);
      return repeated ? `${name}s=[${[text, ...more].join(", ")}]` : `${name}=${text}`;
    });
    const url = JSON.stringify(new URL(".", location.href).href.replace(/\/$/, ""));
    return `import asyncio
from ldpstream.agents.client import EstimateRequest, connect

async def main() -> None:
    async with connect(${url}, token=${token() ? '"TOKEN"' : "None"}) as worker:
        request = EstimateRequest(${options.join(", ")})
        print(await worker.estimate(${JSON.stringify(here.collection)}, request))

asyncio.run(main())
`;
  },
  sql: () => {
    const asked = new URLSearchParams(askedFirst().split("?")[1]);
    return (
      "SELECT * FROM 'finals.parquet' -- of ldpstream finals --to finals.parquet, bounds as published\n" +
      `WHERE collection = '${here.collection}' AND "start" = '${asked.get("start")}';\n`
    );
  },
};

/** @param {Blob} blob @param {string} name */
export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** @returns {string} A name from the collection and its window, or the first of its windows. */
function fileName() {
  if (here.view === "time") {
    const from = shownLines()[0]?.start.replaceAll(":", "");
    return [here.collection, here.attribute, from].filter(Boolean).join("-");
  }
  const [path, query] = askedFirst().split("?");
  const start = new URLSearchParams(query).get("start") ?? "";
  return `${decodeURIComponent(path.split("/")[2])}-${start.replaceAll(":", "")}`;
}

/** @param {"csv" | "json"} format @param {"estimate" | "change"} [what] */
async function saveDocument(format, what = "estimate") {
  say(element("not-saved"), "");
  if (what === "estimate" && here.view === "time") {
    const lines = shownLines();
    const text = format === "csv" ? csvOf(lines) : JSON.stringify(lines, null, 1);
    const type = format === "csv" ? "text/csv" : "application/json";
    save(new Blob([text], { type }), `${fileName()}-lines.${format}`);
    return;
  }
  const name = what === "change" ? `${fileName()}-change` : fileName();
  try {
    save(await download(`${askedFirst(what)}&format=${format}`), `${name}.${format}`);
  } catch (failure) {
    say(element("not-saved"), `Not saved: ${refusalOf(failure)}`);
  }
}

/** @returns {HTMLCanvasElement[]} The pictures of the current view. */
const pictures = () =>
  /** @type {HTMLCanvasElement[]} */ ([
    ...document.querySelectorAll(":is(.chart-host, #map-frame) canvas"),
  ]).filter((canvas) => canvas.offsetParent);

/** Save what is shown as a picture that says of when it is, and how sure. */
function saveCard() {
  const view = element(here.view ?? "");
  /** @param {HTMLElement} row */
  const cellsOf = (row) =>
    [...row.querySelectorAll(":is(th, td):not(.chart, .difference, .more)")].map((cell) =>
      /** @type {HTMLElement} */ (cell).innerText.trim(),
    );
  const all = pictures();
  const shown = [...view.querySelectorAll("table tr")].filter((row) => !row.closest("[hidden]"));
  const rows = all.length ? [] : shown.slice(0, 1 + MOST_ROWS);
  const said = [...view.querySelectorAll("p:is(.sentence, .promise)")]
    .filter((one) => !one.closest("[hidden]"))
    .map((one) => /** @type {HTMLElement} */ (one).innerText)
    .filter(Boolean);
  const period = `${element("state").innerText}: ${element("state-words").innerText}`;
  const reports = `${element("n").innerText} reports`;
  const text = cardOf({
    title: document.title.replace(" · ldpstream", ""),
    paragraphs: [`${period}, ${reports}`, ...said],
    link: address(),
    rows: rows.map((row) => cellsOf(/** @type {HTMLElement} */ (row))),
    pictures: all,
  });
  save(new Blob([text], { type: "image/svg+xml" }), `${fileName()}.svg`);
}

/** Save the pictures of the current view, one below the other. */
function savePicture() {
  const all = pictures();
  const whole = document.createElement("canvas");
  whole.width = Math.max(...all.map(({ width }) => width));
  whole.height = all.reduce((sum, { height }) => sum + height, 0);
  const pen = /** @type {CanvasRenderingContext2D} */ (whole.getContext("2d"));
  pen.fillStyle = colour("card");
  pen.fillRect(0, 0, whole.width, whole.height);
  let top = 0;
  for (const canvas of all) {
    pen.drawImage(canvas, 0, top);
    top += canvas.height;
  }
  whole.toBlob((blob) => blob && save(blob, `${fileName()}.png`));
}

/** Listen to the buttons. */
export function startSharing() {
  element("copy").addEventListener("click", () => void copy(address()));
  for (const [name, command] of Object.entries(COMMANDS)) {
    element(`copy-${name}`).addEventListener("click", () => void copy(command()));
  }
  element("address").addEventListener("blur", () => (element("address-part").hidden = true));
  onKeys(element("address"), CLOSE, () => element("copy").focus());
  element("save-csv").addEventListener("click", () => void saveDocument("csv"));
  element("save-json").addEventListener("click", () => void saveDocument("json"));
  element("save-png").addEventListener("click", savePicture);
  element("save-card").addEventListener("click", saveCard);
  element("save-change").addEventListener("click", () => void saveDocument("csv", "change"));
}

/** Until something is drawn, the address is all that can be handed on. */
export function forgetSharing() {
  here = {};
  element("downloads").hidden = element("commands").hidden = true;
  say(element("not-saved"), "");
}

/** @param {Shown} shown @param {string} view */
export function offerSharing({ collection, window, compared }, view) {
  here = {
    collection: collection.name,
    attribute: collection.attribute,
    window: window.period ? periodName(window.window) : window.window.start,
    compare: compared && (compared.period ? periodName(compared.window) : compared.window.start),
    view,
  };
  element("commands").hidden = view === "time" || !askedFirst();
  element("downloads").hidden = view === "time" ? shownLines().length === 0 : !askedFirst();
  element("save-change").hidden = !compared || !askedFirst("change");
  element("save-png").hidden = !["map", "cumulative", "time"].includes(view);
}
