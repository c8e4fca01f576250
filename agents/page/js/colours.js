// A scale of colours from nothing to much, light to dark on light paper and the other way on dark.

/** @typedef {[number, number, number]} Rgb */

/** @type {Record<"light" | "dark", Rgb[]>} */
const STOPS = {
  light: [
    [233, 242, 250],
    [168, 206, 232],
    [88, 158, 208],
    [30, 103, 172],
    [11, 61, 120],
    [6, 30, 66],
  ],
  dark: [
    [20, 40, 58],
    [23, 74, 112],
    [28, 116, 170],
    [72, 164, 214],
    [157, 211, 240],
    [242, 250, 255],
  ],
};
const STEPS = 256;

/**
 * Return 256 colours as bytes, four each.
 *
 * @param {boolean} dark
 */
export function scaleOfColours(dark) {
  const stops = STOPS[dark ? "dark" : "light"];
  const table = new Uint8ClampedArray(4 * STEPS);
  for (let step = 0; step < STEPS; step += 1) {
    const place = (step / (STEPS - 1)) * (stops.length - 1);
    const from = Math.min(Math.floor(place), stops.length - 2);
    for (let part = 0; part < 3; part += 1) {
      const [low, high] = [stops[from][part], stops[from + 1][part]];
      table[4 * step + part] = low + (place - from) * (high - low);
    }
    table[4 * step + 3] = 255;
  }
  return table;
}

const PALE = 0.35; // How much of its colour a pale cell keeps.

/**
 * Fill an image with the colours of values: grey for NaN, and mixed with grey where they are pale.
 *
 * @param {Uint8ClampedArray} pixels Four bytes a cell.
 * @param {Float64Array} values
 * @param {Uint8Array} pale 1 where a cell is.
 * @param {{low: number, high: number}} range Values at the ends of the scale.
 * @param {{table: Uint8ClampedArray, grey: Rgb}} colours
 */
export function paint(pixels, values, pale, { low, high }, colours) {
  const factor = high > low ? (STEPS - 1) / (high - low) : 0;
  for (let cell = 0; cell < values.length; cell += 1) {
    const at = 4 * cell;
    const known = !Number.isNaN(values[cell]);
    const step = known
      ? Math.min(STEPS - 1, Math.max(0, Math.round((values[cell] - low) * factor)))
      : 0;
    const weight = known ? (pale[cell] ? PALE : 1) : 0;
    for (let part = 0; part < 3; part += 1) {
      pixels[at + part] =
        weight * colours.table[4 * step + part] + (1 - weight) * colours.grey[part];
    }
    pixels[at + 3] = 255;
  }
}
