// Records of several attributes: one is drawn, and reported by its own mechanism. A report is the
// attribute's number, one byte, and that mechanism's report, padded with zeros to one length.

import { sizeOf } from "../domain.js";
import { SpecError, ValueOutsideDomainError } from "../errors.js";
import { largest } from "../loss.js";

const WORD = 1n << 64n;

// `values` are the domains of the attributes, and `tables` their tables by name; `build` builds a
// single mechanism.
export async function sampled({ attributes }, values, tables, build) {
  const named = values.attributes ?? [];
  if (named.length !== attributes.length || named.some(({ name }, j) => name !== attributes[j].name)) {
    throw new SpecError("domain", "the attributes that the parameters name");
  }
  const parts = [];
  for (const [j, { name, mechanism, parameters }] of attributes.entries()) {
    parts.push(await build(mechanism, parameters, named[j].domain, tables[name] ?? {}));
  }
  const names = attributes.map(({ name }) => name);
  const domain = recordsOf(names, parts, endsOf(attributes));
  // However many attributes two records differ in, a report loses at most what the worst one does.
  const loss = () => largest(parts.map((one) => one.loss()));
  return { mechanism: mechanismOf(domain.starts, parts), domain, loss };
}

// The first word that no longer draws an attribute.
function endsOf(attributes) {
  let sum = 0n;
  const ends = attributes.map(({ probability }) => (sum += BigInt(probability)));
  if (sum !== WORD) throw new SpecError("parameters", "probabilities with sum 1");
  return ends;
}

function recordsOf(names, parts, ends) {
  let size = 0;
  const starts = parts.map(({ domain }) => {
    const start = size;
    size += sizeOf(domain);
    return start;
  });
  const given = parts.findIndex(({ domain }) => domain.pair);
  const [own, pairs] = given < 0 ? [parts, []] : [parts.slice(0, given), parts.slice(given)];
  return {
    shape: [size],
    starts,
    // Every attribute is placed, so that neither a refusal nor its time depends on the draw.
    index(records, entropy) {
      if (!Array.isArray(records)) throw new TypeError("expected an array of records");
      const placed = columnsOf(names.slice(0, own.length), own, records, entropy);
      for (const { domain } of pairs) {
        const [first, second] = domain.pair;
        placed.push(placed[first].map((value, i) => value * domain.shape[1] + placed[second][i]));
      }
      const words = entropy.words(records.length);
      return records.map((_, i) => {
        const drawn = ends.findIndex((end) => words[i] < end);
        return starts[drawn] + placed[drawn][i];
      });
    },
  };
}

// Throws the error of the first record that is refused.
function columnsOf(names, parts, records, entropy) {
  const own = (record, name) => typeof record === "object" && record !== null && Object.hasOwn(record, name);
  const lacking = records.findIndex((record) => !names.every((name) => own(record, name)));
  const whole = lacking < 0 ? records : records.slice(0, lacking);
  const refused = [];
  const found = parts.map(({ domain }, j) => {
    try {
      return domain.index(whole.map((record) => record[names[j]]), entropy);
    } catch (error) {
      if (!(error instanceof ValueOutsideDomainError)) throw error;
      refused.push(new ValueOutsideDomainError(error.position, `as ${names[j]} ${error.expected}`));
      return null;
    }
  });
  if (refused.length > 0) throw refused.reduce((a, b) => (b.position < a.position ? b : a));
  if (lacking >= 0) {
    throw new ValueOutsideDomainError(lacking, `a record with a value for each of ${names.join(", ")}`);
  }
  return found;
}

function mechanismOf(starts, parts) {
  const reportBytes = 1 + Math.max(...parts.map(({ mechanism }) => mechanism.reportBytes));
  return {
    reportBytes,
    numbers: false,
    privatize(values, entropy) {
      const reports = values.map(() => new Uint8Array(reportBytes));
      parts.forEach(({ mechanism }, j) => {
        const last = starts[j + 1] ?? Infinity;
        const here = values.flatMap((value, i) => (value >= starts[j] && value < last ? [i] : []));
        if (here.length === 0) return;
        const own = mechanism.privatize(here.map((i) => values[i] - starts[j]), entropy);
        own.forEach((report, at) => {
          reports[here[at]][0] = j;
          reports[here[at]].set(report, 1);
        });
      });
      return reports;
    },
  };
}
