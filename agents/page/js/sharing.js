// Downloads of what is shown: the document as CSV or JSON, the picture as PNG.

import { askedFirst, headersFor, token } from "./api.js";
import { element } from "./dom.js";

/** @param {Blob} blob @param {string} name */
function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** @returns {string} A name from the collection and its window. */
function fileName() {
  const [path, query] = askedFirst().split("?");
  const start = new URLSearchParams(query).get("start") ?? "";
  return `${decodeURIComponent(path.split("/")[2])}-${start.replaceAll(":", "")}`;
}

/** @param {"csv" | "json"} format */
async function saveDocument(format) {
  const answer = await fetch(`${askedFirst()}&format=${format}`, { headers: headersFor(token()) });
  if (answer.ok) save(await answer.blob(), `${fileName()}.${format}`);
}

/** Save the first picture of the current view. */
function savePicture() {
  const canvas = document.querySelector('[role="tabpanel"]:not([hidden]) canvas');
  if (!(canvas instanceof HTMLCanvasElement)) return;
  canvas.toBlob((blob) => blob && save(blob, `${fileName()}.png`));
}

/** Listen to the buttons. */
export function startDownloads() {
  element("save-csv").addEventListener("click", () => void saveDocument("csv"));
  element("save-json").addEventListener("click", () => void saveDocument("json"));
  element("save-png").addEventListener("click", savePicture);
}

/** @param {string} view */
export function offerDownloads(view) {
  element("downloads").hidden = !askedFirst();
  // The view over time shows many documents, so none is downloaded.
  for (const id of ["save-csv", "save-json"]) element(id).hidden = view === "time";
  element("save-png").hidden = !["map", "cumulative", "time"].includes(view);
}
