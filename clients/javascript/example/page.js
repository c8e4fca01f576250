// One report a day, with a ledger: a report is stored before it is sent, and a retry sends the stored
// one. Serve it from the folder above (`python -m http.server -d clients/javascript`) and open
// /example/?gateway=http://127.0.0.1:8080&collection=modes&label=bus&label=walk, with the page's origin
// among gateway.origins.

import { Collection, Ledger, postOnce } from "../index.js";

const DAY_MS = 86_400_000;
const asked = new URLSearchParams(location.search);
const gateway = asked.get("gateway") ?? location.origin;
const name = asked.get("collection") ?? "modes";
const address = `${gateway}/v1/collections/${encodeURIComponent(name)}`;
const said = document.getElementById("said");
const form = document.getElementById("answers");

async function start() {
  const collection = await Collection.fetch(`${address}/spec`, {
    fingerprint: asked.get("fingerprint") ?? undefined,
  });
  const ledger = new Ledger({
    storage: localStorage,
    place: `ldpstream.${name}`,
    budget: asked.get("budget") ?? "30",
    horizonMs: 30 * DAY_MS,
    collections: [[collection, DAY_MS]],
  });
  const answer = async (label) => {
    form.replaceChildren();
    said.textContent = "Sending…";
    const sent = await postOnce(`${address}/reports`, collection, label, { ledger });
    said.textContent = sent ? "Thank you. Come back tomorrow." : "You have answered today.";
  };
  // A stored report is sent again whatever the user would answer, so do not ask.
  if ((await ledger.kept(collection)) !== null) return answer(null);
  for (const label of asked.getAll("label")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.addEventListener("click", () => answer(label).catch(fail));
    form.append(button);
  }
  return form;
}

function fail(error) {
  said.textContent = `Not sent: ${error.message}. What was kept waits for the next visit.`;
}

start().catch(fail);
