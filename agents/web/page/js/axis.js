// Positions in ordered domains, as numbers and as texts of ranges.

/**
 * The edge of a bin, in the digits that a double keeps next to the interval's ends.
 *
 * @param {[number, number]} ends
 * @param {number} bins
 * @param {number} place 0 to bins.
 */
function edge([low, high], bins, place) {
  if (place === bins) return high;
  const digits = 14 - Math.floor(Math.log10(Math.max(Math.abs(low), Math.abs(high))));
  const edge = low + place * ((high - low) / bins);
  return digits < 0 || digits > 100 ? edge : Number(edge.toFixed(digits));
}

/**
 * Return the upper end of a value in a dimension, as a number.
 *
 * @param {Domain} domain
 * @param {number} axis
 * @param {number} place
 */
export function upperEnd(domain, axis, place) {
  if (domain.intervals === null) return place;
  const ends = domain.intervals[axis];
  const extent = domain.shape[axis];
  return domain.rounded ? edge(ends, extent - 1, place) : edge(ends, extent, place + 1);
}

/**
 * Return the label of a value of a dimension, as documents write it.
 *
 * @param {Domain} domain
 * @param {number} axis
 * @param {number} place
 * @returns {Label}
 */
export function labelOf(domain, axis, place) {
  const end = upperEnd(domain, axis, place);
  if (domain.intervals === null || domain.rounded) return end;
  return [edge(domain.intervals[axis], domain.shape[axis], place), end];
}

/**
 * The title of an axis of values: its name, if it has one, and its unit.
 *
 * @param {Pick<Domain, "axes" | "unit">} domain
 * @param {number} axis
 */
export const axisTitle = ({ axes, unit }, axis) =>
  [axes?.[axis], unit].filter(Boolean).join(", ") || "value";

/**
 * Return the text of the range of all values up to a place, in one dimension.
 *
 * @param {Domain} domain
 * @param {number} place
 */
export function rangeUpTo(domain, place) {
  const first = domain.intervals === null ? 0 : domain.intervals[0][0];
  return `${first}..${upperEnd(domain, 0, place)}`;
}

/**
 * Return a quantile's label as a number: the middle or one end of its bin.
 *
 * @param {Label} label
 * @param {"low" | "middle" | "high"} part
 * @returns {number | null}
 */
export function numberOf(label, part) {
  if (typeof label === "number") return label;
  if (!Array.isArray(label) || typeof label[0] !== "number" || typeof label[1] !== "number") {
    return null;
  }
  const [low, high] = /** @type {[number, number]} */ (label);
  return part === "low" ? low : part === "high" ? high : (low + high) / 2;
}
