// Discovery of unknown words over several windows: the prefixes of a round (docs/wire.md, "Rounds").

import { SpecError, ValueOutsideDomainError } from "./errors.js";

const KEYS = ["fingerprint", "round", "start_ms", "end_ms", "prefixes"];

// Returns the domain of a canonical spec with words, whose labels are texts, with the number, `startMs`
// and `endMs` of its round. Without a round in the document the number is null, and no label can be
// placed. `document` is the round's; it must belong to the spec with this fingerprint, and hence to its
// epsilon and number of rounds.
export function readWords({ bits, kept, rounds }, fingerprint, document = null) {
  const lengths = lengthsOf(bits, kept, rounds);
  const extension = (number) => lengths[number] - (number === 0 ? 0 : lengths[number - 1]);
  const later = lengths.slice(1).map((_, i) => kept * 2 ** extension(i + 1));
  const other = Math.max(2 ** lengths[0], ...later);
  const asked = document === null ? null : readRound(document, { fingerprint, kept, lengths, rounds });
  const place = (label, position) => {
    const word = bytesOf(label);
    if (word === null) throw new ValueOutsideDomainError(position, "a text without U+0000");
    if (8 * word.length > bits) return other;
    const digits = [...word].map((byte) => byte.toString(2).padStart(8, "0")).join("").padEnd(bits, "0");
    const step = extension(asked.number);
    const end = lengths[asked.number];
    const prefix = asked.prefixes.indexOf(digits.slice(0, end - step));
    return prefix < 0 ? other : prefix * 2 ** step + parseInt(digits.slice(end - step, end) || "0", 2);
  };
  return {
    shape: [other + 1],
    expected: "a text without U+0000",
    words: { rounds, round: asked?.number ?? null, startMs: asked?.startMs, endMs: asked?.endMs },
    index(labels) {
      if (!Array.isArray(labels)) throw new TypeError("expected an array of words");
      if (asked === null) throw new SpecError("round", "what a round asks about, got a document without");
      return labels.map(place);
    },
  };
}

// The number of bits of the prefixes of each round.
function lengthsOf(bits, kept, rounds) {
  const first = kept.toString(2).length - 1;
  const step = Math.max(1, Math.ceil((bits - first) / (rounds - 1)));
  const ahead = Array.from({ length: rounds - 1 }, (_, i) => bits - step * (rounds - 2 - i));
  return [...ahead, bits];
}

// Lone surrogates are refused, because different ones would be encoded alike. A word is spelled in NFC
// first, so that it is one word however it is typed.
function bytesOf(label) {
  if (typeof label !== "string" || /[\0\p{Surrogate}]/u.test(label)) return null;
  return new TextEncoder().encode(label.normalize());
}

function readRound(document, { fingerprint, kept, lengths, rounds }) {
  for (const key of Object.keys(document)) {
    if (!KEYS.includes(key)) throw new SpecError(`round.${key}`, `one of the keys ${KEYS.join(", ")}`);
  }
  const { round: number, start_ms: startMs, end_ms: endMs, prefixes } = document;
  if (document.fingerprint !== fingerprint) {
    throw new SpecError("round.fingerprint", `${fingerprint}, got a round of another spec`);
  }
  if (!Number.isInteger(number) || number < 0 || number >= rounds) {
    throw new SpecError("round", `one of the rounds 0 to ${rounds - 1}, got ${number}`);
  }
  const windowMs = endMs - startMs;
  const isOwn = Number.isSafeInteger(startMs) && Number.isSafeInteger(endMs) && windowMs > 0;
  const place = Math.floor(startMs / windowMs) % rounds;
  if (!isOwn || startMs % windowMs !== 0 || (place + rounds) % rounds !== number) {
    throw new SpecError("round", `the window of round ${number}, got another`);
  }
  const [length, most] = number === 0 ? [0, 1] : [lengths[number - 1], kept];
  const isPrefix = (one) => typeof one === "string" && one.length === length && /^[01]*$/.test(one);
  const isList = Array.isArray(prefixes) && prefixes.every(isPrefix) && prefixes.length <= most;
  if (!isList || new Set(prefixes).size !== prefixes.length) {
    throw new SpecError("round.prefixes", `at most ${most} different texts of ${length} digits 0 and 1`);
  }
  return { number, startMs, endMs, prefixes };
}
