// A colour scale from little to much: light to dark, in the dark theme dark to light.

const STOPS = {
  light: ["#e9f2fa", "#a8cee8", "#589ed0", "#1e67ac", "#0b3d78", "#061e42"],
  dark: ["#14283a", "#174a70", "#1c74aa", "#48a4d6", "#9dd3f0", "#f2faff"],
};
const STEPS = 256;
const LEAST = 0.3; // Of a colour, to be told from the ground.

/**
 * A colour from one for less through the ground to one for more.
 *
 * @param {number} part -1 to 1.
 * @param {Record<"less" | "ground" | "more", string>} names Of colours of the page.
 * @param {(name: string) => string} colour
 */
export function divergingColour(part, { less, ground, more }, colour) {
  const ends = [ground, part < 0 ? less : more].map(colour);
  const [from, to] = ends.map((one) => one.match(/\d+/g) ?? []);
  const much = part === 0 ? 0 : LEAST + (1 - LEAST) * Math.min(1, Math.abs(part));
  const mixed = from.map((one, at) =>
    Math.round(Number(one) + much * (Number(to[at]) - Number(one))),
  );
  return `rgb(${mixed.slice(0, 3).join(", ")})`;
}

/**
 * Return 256 colours as bytes, four each.
 *
 * @param {boolean} dark
 */
export function scaleOfColours(dark) {
  const stops = STOPS[dark ? "dark" : "light"].map((stop) =>
    [1, 3, 5].map((at) => Number.parseInt(stop.slice(at, at + 2), 16)),
  );
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
