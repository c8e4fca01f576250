// The certificate of a collection's policy, which a worker proves once; nothing is claimed before.

import { ask, collectionPath, refusalOf } from "../api.js";
import { element, fillPairs, make, say } from "../dom.js";
import { countText, tickText } from "../format.js";
import { save } from "../shell/sharing.js";

/** @typedef {{certificate?: Certificate, refused?: string, at: number}} Known */

const AGAIN_MS = 60_000; // After a refusal.

/** @type {Map<string, Known>} By collection, spec and spread. */
const known = new Map();
let shown = "";

/** @param {Collection} collection */
const keyOf = ({ name, fingerprint, privacy }) =>
  JSON.stringify([name, fingerprint, privacy.spent]);

/**
 * Whether the proof is known, and holds for every report that is counted.
 *
 * @param {Collection} collection
 */
export const isProved = (collection) =>
  !collection.accepted.length && known.get(keyOf(collection))?.certificate?.pass === true;

/** Forget which collection is shown, so that no late answer is drawn. */
export function forgetProof() {
  shown = "";
}

/**
 * Draw what is known, and ask for it if nothing is.
 *
 * @param {Collection} collection
 */
export function drawProof(collection) {
  const key = keyOf(collection);
  shown = key;
  const one = known.get(key);
  draw(collection, one);
  if (one && (one.refused === undefined || Date.now() < one.at + AGAIN_MS)) return;
  known.set(key, { at: Date.now() });
  void prove(collection).then((found) => {
    known.set(key, found);
    if (shown === key) draw(collection, found);
  });
}

/** @param {Collection} collection @returns {Promise<Known>} */
async function prove({ name, fingerprint }) {
  const path = `${collectionPath(name)}/certificate?fingerprint=${fingerprint}`;
  try {
    return { certificate: await ask(path), at: Date.now() };
  } catch (failure) {
    return { refused: refusalOf(failure), at: Date.now() };
  }
}

/** @param {Collection} collection @param {Known | undefined} found */
function draw(collection, found) {
  const { certificate, refused } = found ?? {};
  const { minimum, minimum_block: least, accepted } = collection;
  const ofBlock = least > 1 ? `, of a block ${countText(least)}` : "";
  const earlier = accepted.length;
  fillPairs("proof", [
    ["certificate", verdict(certificate, refused)],
    ...(certificate ? factsOf(certificate) : []),
    ["mechanism", certificate?.mechanism ?? collection.mechanism],
    ["fingerprint", collection.fingerprint],
    ["nothing shown below", `${countText(minimum)} report${minimum === 1 ? "" : "s"}${ofBlock}`],
    earlier ? ["earlier specs", `${earlier}, see below`] : null,
  ]);
  const command = `ldpstream certify ${collection.name}`;
  say(
    element("proof-note"),
    certificate
      ? "Of a report of this mechanism as configured, proved by a worker; not of the software " +
          `on devices.${earlier ? ` ${command} proves the earlier specs, too.` : ""}`
      : `${command} proves it anywhere.`,
  );
  drawYear(certificate?.year);
  element("proved").hidden = !isProved(collection);
  const file = element("save-proof");
  file.hidden = !certificate;
  file.onclick = () => {
    const text = JSON.stringify(certificate, null, 2);
    const name = `${collection.name}-${collection.fingerprint}-certificate.json`;
    save(new Blob([text], { type: "application/json" }), name);
  };
}

/** @param {Certificate | undefined} certificate @param {string | undefined} refused */
function verdict(certificate, refused) {
  if (refused !== undefined) return `not known: ${refused}`;
  if (!certificate) return "being proved";
  return certificate.pass
    ? make("strong", { className: "good" }, "holds, in exact arithmetic")
    : make("strong", { className: "alarm" }, `fails: ${certificate.violation ?? "see its file"}`);
}

/** @param {Certificate} certificate @returns {(string[] | null)[]} */
function factsOf({ factor, largest_factor: largest, policy, proof, odds, information }) {
  return [
    [worstOf(policy), factor ?? "unbounded"],
    largest && isMetric(policy)
      ? ["worst factor of any two", largest.includes("e") ? "no limit" : largest]
      : null,
    ...odds.slice(-1).map(({ said }) => ["beliefs", said]),
    information
      ? ["mutual information", `${tickText(information.bits, "", 3)} bits a report`]
      : null,
    ["checked", proof === "enumeration" ? "every pair and report" : "its construction"],
  ];
}

/**
 * Whether budgets grow with distance, so that neighbours do not show the worst.
 *
 * @param {Policy} policy
 * @returns {boolean}
 */
function isMetric({ kind, values, attributes }) {
  if (values) return isMetric(values);
  return kind === "metric" || Object.values(attributes ?? {}).some(isMetric);
}

/**
 * What the largest ratio is about: policies differ in what they bound.
 *
 * @param {Policy} policy
 * @returns {string}
 */
function worstOf({ kind, metric, values, attributes }) {
  if (kind === "lip") return "worst change of a probability";
  if (kind === "public weights" && values) return worstOf(values);
  if (kind === "metric" && metric === "l1") return "worst factor of a step";
  if (kind === "metric" && metric === "graph") return "worst factor of an edge";
  const said = new Set(Object.values(attributes ?? {}).map(worstOf));
  const [only] = said;
  if (kind === "metric" || said.size > 1) return "worst factor listed";
  return only ?? "worst factor found";
}

/** @param {YearInWords | undefined} year Of the certificate; undefined while there is none. */
function drawYear(year) {
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
