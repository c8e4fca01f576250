// Groups of values, of which reports come, or from a blanket that does not depend on the value. Reports
// of a group are its values, points or subsets; groups of one value without a budget have one report.

import { blocksOf, readBlocks, startsOf } from "../blocks.js";
import { readFraction, readKeeps } from "../chains.js";
import { bernoulliEach, bernoulliRational, bernoulliRationals, uniformBelow } from "../entropy.js";
import { SpecError } from "../errors.js";
import { isAbove, rational } from "../rational.js";
import { Geometry } from "./geometry.js";
import { readSensitive } from "./high_low.js";
import { drawPoints } from "./projective_geometry.js";
import { drawSubsets } from "./subset_selection.js";
import { bytesOf, littleEndian, numberOf, symbols } from "./symbols.js";

const WORD = 1n << 64n;
const ONE = rational(1);

export async function groups(parameters, size, tables) {
  const { ofValue, place, sizes } = await readGroups(parameters, size, tables);
  const threshold = BigInt(parameters.threshold);
  const kinds = kindsOf(parameters, sizes);
  const kindOf = kindsOfGroups(parameters, sizes);
  const blanket = blanketOf(kinds, kindOf);
  const splits = kinds.some(({ supporting }) => supporting < WORD);
  const form = JSON.stringify([
    parameters.blocks ?? parameters.sensitive,
    kinds.map(({ size, chosen, order, blanket: part }) => [size, chosen, order, String(part)]),
  ]);

  // The group that each report is from; whether it is an own one, and one that supports.
  function drawGroups(values, entropy) {
    const of = values.map((value) => ofValue[value]);
    const own = threshold === WORD ? of.map(() => true) : bernoulliEach(entropy, of.map(() => threshold));
    const others = of.flatMap((_, i) => (own[i] ? [] : [i]));
    const source = [...of];
    drawBlanket(entropy, others.length).forEach((group, at) => {
      source[others[at]] = group;
    });
    const limits = of.map((group) => kinds[kindOf[group]].supporting);
    return { of, own, others, source, supports: splits ? bernoulliEach(entropy, limits) : of.map(() => true) };
  }

  function drawBlanket(entropy, n) {
    const drawn = blanket.length > 1 ? [...entropy.words(n)] : new Array(n).fill(0n);
    return drawn.map((word) => blanket.find(({ end }) => word < end).group);
  }

  // Whether a permanent report of a group stays, and the group of the report that is drawn for it.
  function stepOf(keep) {
    const [remain, ...stay] = readStay(parameters, kinds, keep);
    const moves = stay.some((fraction) => isAbove(ONE, fraction));
    return (own, entropy) => {
      const remains = bernoulliRational(entropy, remain);
      const [other] = threshold < WORD ? drawBlanket(entropy, 1) : [own];
      const [still] = moves ? bernoulliRationals(entropy, [stay[kindOf[own]]]) : [true];
      return { stays: remains && still, group: remains ? own : other };
    };
  }

  if (kinds.some(({ chosen }) => chosen > 1)) return subsetReports();
  const orders = kindOf.map((kind) => kinds[kind].order);
  const starts = startsOf(orders);
  return symbols(starts.at(-1) + orders.at(-1), (values, entropy) => {
    const { of, own, others, source, supports } = drawGroups(values, entropy);
    const reports = new Array(values.length).fill(0);
    kinds.forEach((kind, number) => {
      const mine = of.map((group) => kindOf[group] === number);
      if (kind.size > 1) {
        const here = of.flatMap((_, i) => (own[i] && (threshold < WORD || mine[i]) ? [i] : []));
        const places = values.map((value, i) => (mine[i] ? place[value] : 0));
        const sent = drawOwn(kind, entropy, { here, places, wanted: supports });
        for (const i of here) if (mine[i]) reports[i] = sent[i];
      }
      if (kind.blanket > 0n) {
        uniformBelow(entropy, kind.order, others.length).forEach((drawn, at) => {
          if (kindOf[source[others[at]]] === number) reports[others[at]] = drawn;
        });
      }
    });
    return reports.map((report, i) => starts[source[i]] + report);
  }, { form, again });

  function again(keep) {
    const step = stepOf(keep);
    return (report, entropy) => {
      const { stays, group } = step(starts.filter((start) => start <= report).length - 1, entropy);
      let sent = starts[group];
      kinds.forEach(({ order }, number) => {
        const mine = kindOf[group] === number;
        if (order === 1 || (!mine && threshold === WORD)) return;
        const [drawn] = uniformBelow(entropy, order, 1);
        if (mine) sent += drawn;
      });
      return stays ? report : sent;
    };
  }

  function subsetReports() {
    const groupBytes = bytesOf(sizes.length - 1);
    const reportBytes = groupBytes + Math.ceil(sizes.reduce((a, b) => Math.max(a, b), 0) / 8);
    return {
      reportBytes,
      numbers: false,
      privatize(values, entropy) {
        const { own, source, supports } = drawGroups(values, entropy);
        return drawReports(entropy, source, values.map((value, i) => (own[i] ? place[value] : -1)), supports);
      },
      chain: { form, sender },
    };

    // Reports of groups that support the values at the places, if not -1, or do not.
    function drawReports(entropy, source, places, supports) {
      const reports = source.map((group) => {
        const report = new Uint8Array(reportBytes);
        report.set(littleEndian(group, groupBytes));
        if (sizes[group] === 1) report[groupBytes] = 1;
        return report;
      });
      kinds.forEach((kind, number) => {
        if (kind.size === 1) return;
        const rows = source.flatMap((group, i) => {
          const mine = kindOf[group] === number;
          if (!mine && threshold === WORD) return [];
          const report = mine ? reports[i] : new Uint8Array(reportBytes);
          return [{ report, place: mine ? places[i] : Math.min(places[i], 0), wanted: supports[i] }];
        });
        drawSubsets(entropy, kind.size, kind.chosen, rows, groupBytes);
      });
      return reports;
    }

    function sender(keep) {
      const step = stepOf(keep);
      return (report, entropy) => {
        const { stays, group } = step(numberOf(report.subarray(0, groupBytes)), entropy);
        const [sent] = drawReports(entropy, [group], [-1], [false]);
        return stays ? report : sent;
      };
    }
  }
}

// The fraction of reports that remain in their group, and of each kind those that stay in it.
function readStay({ kinds: several }, kinds, keep) {
  if (!several) return [readKeeps(keep, [kinds[0].order]).get(kinds[0].order), ...kinds.map(() => ONE)];
  if (keep.length !== kinds.length + 1) {
    throw new SpecError("hold.keep", "a fraction of reports, and one for each of the kinds");
  }
  return keep.map(readFraction);
}

// The group of each value: its block, or the list of sensitive values that it is in. Without either it
// is a group of its own.
async function readGroups(parameters, size, tables) {
  if (parameters.sensitive === undefined) return readBlocks(size, parameters.blocks, tables.blocks);
  const listed = tables.sensitive ?? [];
  const lists = parameters.kinds ? listed : [listed];
  const values = await readSensitive(parameters, size, { sensitive: lists.flat() });
  const counts = [parameters.sensitive.count].flat();
  if (lists.some((list, i) => list.length !== counts[i]) || new Set(values).size < values.length) {
    throw new SpecError("tables.sensitive", "lists of as many values as the spec says");
  }
  const ofValue = new Array(size).fill(-1);
  lists.forEach((list, group) => {
    for (const value of list) ofValue[value] = group;
  });
  let next = lists.length;
  return blocksOf(ofValue.map((group) => (group < 0 ? next++ : group)), next);
}

// Runs [groups, numbers of their kinds by size].
function runsOf({ budgets }, sizes) {
  const counts = budgets?.map(([, , count]) => count) ?? [1, sizes.length - 1];
  let [first, kinds] = [0, 0];
  return counts.map((count) => {
    const different = [...new Set(sizes.slice(first, first + count))].sort((a, b) => a - b);
    first += count;
    kinds += different.length;
    return [count, new Map(different.map((size, i) => [size, kinds - different.length + i]))];
  });
}

function kindsOfGroups(parameters, sizes) {
  let next = 0;
  return runsOf(parameters, sizes).flatMap(([count, numbers]) => {
    next += count;
    return sizes.slice(next - count, next).map((size) => numbers.get(size));
  });
}

function kindsOf(parameters, sizes) {
  const single = { size: sizes[0], ...parameters, supporting: WORD, blanket: WORD };
  const listed = parameters.kinds ?? [single, { size: 1, chosen: 1, supporting: WORD, blanket: 0n }];
  return listed.map(({ size, chosen, q, dimension, supporting, blanket }) => {
    const geometry = q === undefined ? null : new Geometry(q, dimension);
    const order = geometry === null ? size : geometry.points;
    return { size, chosen, geometry, order, supporting: BigInt(supporting), blanket: BigInt(blanket) };
  });
}

// The groups of the blanket, each with the end of its part of 0..2^64. The first of those with the
// largest part has what is left of it.
function blanketOf(kinds, kindOf) {
  const parts = kindOf.flatMap((kind, group) => {
    const part = kinds[kind].blanket;
    return part > 0n ? [{ group, part }] : [];
  });
  if (parts.length === 0) return [];
  const largest = parts.reduce((a, b) => (b.part > a.part ? b : a));
  largest.part += WORD - parts.reduce((sum, { part }) => sum + part, 0n);
  let end = 0n;
  return parts.map(({ group, part }) => ({ group, end: (end += part) }));
}

// Fills in reports that support the values at the places `here`, where wanted, or else that do not.
function drawOwn({ size, geometry, supporting }, entropy, { here, places, wanted }) {
  const sent = [...places];
  if (geometry !== null) {
    drawPoints(geometry, entropy, { here, places, wanted }, sent);
  } else if (supporting < WORD) {
    uniformBelow(entropy, size - 1, here.length).forEach((other, at) => {
      const i = here[at];
      if (!wanted[i]) sent[i] = other + (other >= places[i] ? 1 : 0);
    });
  }
  return sent;
}
