// Exact rationals `{numerator, denominator}` of BigInts, with a denominator above 0.

const NUMBER = /^([0-9]+)(?:\.([0-9]+))?(?:e([+-]?[0-9]{1,3}))?$/i;
const FRACTION = /^([0-9]+)\/([0-9]*[1-9][0-9]*)$/;

export const ZERO = rational(0);

// A double as an exact rational: its 53 bits times a power of two.
export function rational(number) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, number);
  const bits = view.getBigUint64(0);
  const exponent = Number((bits >> 52n) & 0x7ffn);
  const fraction = bits & ((1n << 52n) - 1n);
  const whole = exponent === 0 ? fraction : fraction | (1n << 52n);
  const signed = bits >> 63n ? -whole : whole;
  const power = Math.max(exponent, 1) - 1075;
  return power >= 0
    ? { numerator: signed << BigInt(power), denominator: 1n }
    : { numerator: signed, denominator: 1n << BigInt(-power) };
}

// The number that a text such as "0.3", "1e-3" or "1/3" spells; null if it is not a number >= 0.
export function readRational(text) {
  const fraction = FRACTION.exec(text);
  if (fraction !== null) return { numerator: BigInt(fraction[1]), denominator: BigInt(fraction[2]) };
  const number = NUMBER.exec(text);
  if (number === null) return null;
  const [, whole, decimals = "", exponent = "0"] = number;
  const power = BigInt(exponent) - BigInt(decimals.length);
  const digits = BigInt(whole + decimals);
  return power >= 0n
    ? { numerator: digits * 10n ** power, denominator: 1n }
    : { numerator: digits, denominator: 10n ** -power };
}

// The decimal that a double stands for: its shortest one, which it prints as.
export function decimalOf(number) {
  const { numerator, denominator } = readRational(String(Math.abs(number)));
  return { numerator: number < 0 ? -numerator : numerator, denominator };
}

export function add(a, b) {
  return reduced(
    a.numerator * b.denominator + b.numerator * a.denominator,
    a.denominator * b.denominator,
  );
}

// Not reduced to lowest terms, to be fast for numbers that are rounded at random.
export function subtract(a, b) {
  return {
    numerator: a.numerator * b.denominator - b.numerator * a.denominator,
    denominator: a.denominator * b.denominator,
  };
}

export function multiply(a, b) {
  return reduced(a.numerator * b.numerator, a.denominator * b.denominator);
}

export function isAbove(a, b) {
  return a.numerator * b.denominator > b.numerator * a.denominator;
}

// In lowest terms, to which numbers that were only read are not reduced.
export function write(number) {
  const { numerator, denominator } = reduced(number.numerator, number.denominator);
  return denominator === 1n ? String(numerator) : `${numerator}/${denominator}`;
}

// A double at or slightly above a number >= 0, for display.
export function doubleAbove({ numerator, denominator }) {
  const near = Number((numerator << 64n) / denominator) / 2 ** 64;
  if (!isAbove({ numerator, denominator }, rational(near))) return near;
  return (Number((numerator << 64n) / denominator + 1n) / 2 ** 64) * (1 + 2 ** -51);
}

// A double close to a number >= 0, from its highest 64 bits.
export function nearest({ numerator, denominator }) {
  const bits = (number) => number.toString(16).length * 4;
  const shift = 70 + bits(denominator) - bits(numerator);
  const whole = shift >= 0
    ? (numerator << BigInt(shift)) / denominator
    : numerator / (denominator << BigInt(-shift));
  return Number(whole) * 2 ** -shift;
}

function reduced(numerator, denominator) {
  let [a, b] = [numerator, denominator];
  while (b > 0n) [a, b] = [b, a % b];
  return { numerator: numerator / a, denominator: denominator / a };
}
