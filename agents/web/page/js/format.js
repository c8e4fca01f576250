// Numbers, labels and times as readable text.

import { numberOf } from "./axis.js";
import { nowMs } from "./shell/clock.js";

const UNDEFINED = "undefined";
export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
const UTC = "UTC";
const STORED = "ldpstream.zone";
const LOCALE = navigator.language;
/** @type {Map<string, Intl.NumberFormat | Intl.DateTimeFormat>} They are slow to make. */
const formats = new Map();

/**
 * @template {Intl.NumberFormat | Intl.DateTimeFormat} Format
 * @param {new (locale: string, options: any) => Format} Kind
 * @param {Intl.NumberFormatOptions | Intl.DateTimeFormatOptions} options
 */
function formatOf(Kind, options) {
  const key = JSON.stringify(options);
  const format = formats.get(key) ?? new Kind(LOCALE, options);
  formats.set(key, format);
  return /** @type {Format} */ (format);
}

const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

/** @param {string} text Returns it as a part of a sentence, the rest of which stays in its order. */
const isolated = (text) => (RIGHT_TO_LEFT.test(text) ? `\u2068${text}\u2069` : text);

/**
 * A number in the digits and with the separators of the browser's language.
 *
 * @param {number} value
 * @param {Intl.NumberFormatOptions} options
 */
const localText = (value, options) =>
  isolated(
    formatOf(Intl.NumberFormat, { signDisplay: "negative", ...options })
      .format(value)
      .replace("-", "−"),
  );

/** @param {number} digits */
const exactly = (digits) => ({ minimumFractionDigits: digits, maximumFractionDigits: digits });

/** @param {string} name Returns it without marks that would turn around what follows. */
export const nameText = (name) => isolated(name.replace(/[\u202a-\u202e\u2066-\u2069]/g, "\ufffd"));

/**
 * @param {Label} value
 * @param {Domain} [domain] It says which labels are bins.
 * @returns {string}
 */
export function labelText(value, domain) {
  if (value === null) return UNDEFINED;
  const names = domain?.value_labels ?? {};
  if (!Array.isArray(value) && Object.hasOwn(names, value)) return nameText(names[value]);
  if (Array.isArray(value)) {
    const { parts } = domain ?? {};
    if (parts) return `[${value.map((one, at) => labelText(one, parts[at])).join(", ")}]`;
    const ends = domain?.rounded ? null : domain?.intervals;
    if (ends) {
      const sides = /** @type {[number, number][]} */ (ends.length === 1 ? [value] : value);
      const short = sides.length > 1;
      return sides.map((side, at) => binText(side, ends[at][1], short)).join(" × ");
    }
    return `[${value.map((one) => labelText(one)).join(", ")}]`;
  }
  return typeof value === "number" ? numberText(value) : nameText(value);
}

/** @param {number} width Returns the decimals that tell numbers so far apart from each other. */
const digitsOf = (width) => Math.min(20, Math.max(0, 1 - Math.floor(Math.log10(width))));

/** @param {number} value Of an ordered domain, with all digits of `numberText`, as people write it. */
export const valueText = (value) =>
  localText(value, {
    useGrouping: false,
    maximumSignificantDigits: Number.isInteger(value) ? 21 : 15,
  });

/**
 * The edge of a bin or a place on an axis, which may be a code: without groups of digits.
 *
 * @param {number} edge
 * @param {number} width Of the bin, or how far the next place with a number is.
 */
export const edgeText = (edge, width) =>
  localText(edge, { useGrouping: false, maximumFractionDigits: digitsOf(width) });

/**
 * One side of a bin; only the last bin includes its upper end.
 *
 * @param {[number, number]} ends
 * @param {number} last The upper end of all.
 * @param {boolean} short With the digits that tell it from its neighbours.
 */
function binText([low, high], last, short) {
  const digits = digitsOf(high - low);
  const texts = [low, high].map((end) => numberText(short ? Number(end.toFixed(digits)) : end));
  return `[${texts.join(", ")}${high === last ? "]" : ")"}`;
}

/**
 * A number in the digits that all doubles keep: 0.3, not 0.30000000000000004. Whole numbers, which
 * may be codes, keep all of theirs.
 *
 * @param {number} value
 */
export function numberText(value) {
  return String(Number.isInteger(value) ? value : Number(value.toPrecision(15)));
}

/**
 * The name of an area, which is what a query asks for, as people write it: "44 to 49, 97". A label
 * stays as it is.
 *
 * @param {{name: string, box: number[][] | null, block?: number | null, inside?: number | null}} area
 */
export const areaText = ({ name, box, block, inside }) =>
  box === null || (inside === null && block !== null)
    ? name
    : name
        .replace(/(?<=\d)\.0(?!\d)/g, "")
        .replace(/([^,\s]+?)\.\.([^,\s]+)/g, (_, low, high) =>
          low === high ? low : `${low} to ${high}`,
        )
        .replace(/,/g, ", ");

/** @param {number | null | undefined} value */
export function countText(value) {
  if (value === null || value === undefined) return UNDEFINED;
  return localText(Math.round(value), { maximumFractionDigits: 0 });
}

/** @param {number} forged */
export const forgedText = (forged) =>
  `${countText(forged)} forged ${forged === 1 ? "report" : "reports"}`;

/**
 * Return how many reports wait, and what for.
 *
 * @param {Waiting} waiting
 * @param {number} minimum
 */
export function waitingText({ reports, until, more, because }, minimum) {
  const said = reports === 1 ? "1 report waits" : `${countText(reports)} reports wait`;
  if (until === "closing") return `${said} until the window closes, because of ${because}.`;
  if (!more) return `${said} to be grouped by the worker of partition 0, which takes a moment.`;
  const others = `${countText(more)} more`;
  const least = `minimum = ${countText(minimum)}`;
  return until === "later"
    ? `${said} for ${others} in later windows, which have to close (${least}).`
    : `${said} for ${others}, or until the window closes with ${least} or more.`;
}

/** @param {number | null} share @param {number} decimals */
export function percentText(share, decimals) {
  return share === null ? UNDEFINED : localText(share, { style: "percent", ...exactly(decimals) });
}

/**
 * Return how many decimals percentages need to show two digits of the usual width of bounds.
 *
 * @param {Bounded[]} entries
 */
export function decimalsFor(entries) {
  const widths = entries
    .map(({ low, high }) => (low === null || high === null ? 0 : (100 * (high - low)) / 2))
    .filter((width) => width > 0)
    .sort((a, b) => a - b);
  if (widths.length === 0) return 2;
  const usual = widths[Math.floor(widths.length / 2)];
  return Math.min(6, Math.max(1, 1 - Math.floor(Math.log10(usual))));
}

/**
 * A number on an axis.
 *
 * @param {number} value
 * @param {string} unit
 * @param {number} [digits] Significant digits.
 * @param {boolean} [signed] Whether more than 0 has a sign, too.
 */
export function tickText(value, unit, digits = 6, signed = false) {
  const signs = signed ? /** @type {const} */ ({ signDisplay: "exceptZero" }) : {};
  const options = { maximumSignificantDigits: digits, ...signs };
  if (unit === "%") return localText(value / 100, { style: "percent", ...options });
  return `${localText(value, options)}${unit}`;
}

/**
 * A number in a unit of its own, with two digits of the width of its bounds.
 *
 * @param {number | null} value
 * @param {Bounded} bounds
 */
export function meanText(value, { low, high }) {
  if (value === null) return UNDEFINED;
  const half = low === null || high === null ? 0 : (high - low) / 2;
  if (half <= 0) return tickText(value, "");
  return localText(value, exactly(digitsOf(half)));
}

/**
 * A quantile and its bounds as text, with the outer ends of bins: "44 or less" and "36 to 48".
 *
 * @param {QuantileEntry} quantile
 * @param {string | null} [unit]
 */
export function quantileTexts({ value, low, high }, unit = "") {
  const ends = [numberOf(value, "high"), numberOf(low, "low"), numberOf(high, "high")];
  const [at, from, to] = ends.map((end) => (end === null ? UNDEFINED : valueText(end)));
  return [`${at}${unit ? ` ${unit}` : ""} or less`, `${from} to ${to}`];
}

/** @param {number} confidence */
export function confidenceText(confidence) {
  return localText(confidence, { style: "percent", maximumSignificantDigits: 6 });
}

/** @returns {boolean} Whether times are those of this machine, not UTC. */
export const isLocal = () => localStorage.getItem(STORED) === "local";

/** @param {boolean} local */
export const chooseZone = (local) => localStorage.setItem(STORED, local ? "local" : UTC);

/**
 * The zone in which times are written: that of a collection's days, else the chosen one.
 *
 * @param {string} [zone]
 */
export const zoneOf = (zone = UTC) =>
  zone === UTC && isLocal() ? Intl.DateTimeFormat().resolvedOptions().timeZone : zone;

/** @param {string} time RFC 3339; with an offset from UTC it is that of a local day. */
const isMoment = (time) => time.endsWith("Z");

/** @param {number} ms @param {Intl.DateTimeFormatOptions} options @param {string} [zone] */
const timeText = (ms, options, zone = zoneOf()) =>
  isolated(formatOf(Intl.DateTimeFormat, { timeZone: zone, ...options }).format(ms));

/** @param {number} ms @param {string} [zone] Returns the day, with its year unless that is this one. */
export const dayText = (ms, zone) => {
  const [year, now] = [ms, nowMs()].map((one) => timeText(one, { year: "numeric" }, zone));
  /** @type {Intl.DateTimeFormatOptions} */
  const parts = { weekday: "short", day: "numeric", month: "short" };
  return timeText(ms, year === now ? parts : { ...parts, year: "numeric" }, zone);
};

/** @param {number} ms @param {string} [zone] */
export const shortDayText = (ms, zone) => timeText(ms, { day: "numeric", month: "short" }, zone);

/** @param {number} ms @param {string} [zone] With the zone's name in an hour that a day has twice. */
export function hourText(ms, zone) {
  /** @type {Intl.DateTimeFormatOptions} */
  const options = {
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
    ...(ms % 60_000 < 1000 ? {} : { second: "2-digit" }),
  };
  const text = timeText(ms, options, zone);
  const twice = [-HOUR_MS, HOUR_MS].some((by) => timeText(ms + by, options, zone) === text);
  return twice ? timeText(ms, { ...options, timeZoneName: "short" }, zone) : text;
}

/** @param {string} time RFC 3339 of a local day. Returns its midnight as if it were one in UTC. */
const midnightOf = (time) => Date.parse(`${time.slice(0, 10)}T00:00:00Z`);

/**
 * Local days, which have their zone's offset from UTC: "Sun, Oct 25, 2026 (25 h)".
 *
 * @param {Span} span
 */
function daysText({ start, end }) {
  const [first, after] = [start, end].map(midnightOf);
  const days = Math.round((after - first) / DAY_MS);
  const [from, last] = [first, after - DAY_MS].map((day) => dayText(day, UTC));
  const text = days > 1 ? `${from} – ${last}` : from;
  const hours = (Date.parse(end) - Date.parse(start)) / HOUR_MS;
  return hours === 24 * days ? text : `${text} (${tickText(hours, "")} h)`;
}

/** @param {Span} span A whole day is 00:00 to 24:00. */
export function spanText({ start, end }) {
  if (!isMoment(start)) return daysText({ start, end });
  const [from, to] = [start, end].map((time) => Date.parse(time));
  const [day, last] = [from, to].map((ms) => dayText(ms));
  const midnight = to - from <= DAY_MS && dayText(to - 1) === day;
  const until = midnight && day !== last ? localMidnight() : hourText(to);
  return `${day}, ${hourText(from)} – ${day === last || midnight ? until : `${last}, ${until}`}`;
}

const localMidnight = () =>
  [24, 0].map((two) => localText(two, { minimumIntegerDigits: 2 })).join(":");

/** @param {number} ms @returns {string} "UTC", or the name of the zone at this moment. */
const zoneText = (ms) =>
  formatOf(Intl.DateTimeFormat, { timeZone: zoneOf(), timeZoneName: "short" })
    .formatToParts(ms)
    .find(({ type }) => type === "timeZoneName")?.value ?? UTC;

/** @param {Span} span With the name of the zone, where it is not that of local days. */
export const zonedSpanText = (span) =>
  `${spanText(span)}${isMoment(span.start) ? ` ${zoneText(Date.parse(span.start))}` : ""}`;

/** @param {{size: string, size_ms: number, hop_ms: number}} window Of a collection. */
export const windowText = ({ size, size_ms, hop_ms }) =>
  size.includes(", ")
    ? size
    : `${durationText(size_ms)}${hop_ms === size_ms ? "" : `, every ${durationText(hop_ms)}`}`;

/** @param {number} ms */
export function durationText(ms) {
  /** @type {[number, string][]} */
  const units = [
    [DAY_MS, "d"],
    [HOUR_MS, "h"],
    [60000, "min"],
    [1000, "s"],
  ];
  const [length, unit] = units.find(([length]) => ms >= length && ms % length === 0) ?? [1, "ms"];
  return `${localText(ms / length, {})} ${unit}`;
}

/** @param {number} part @param {number} [digits] Significant ones. */
export function partText(part, digits = 2) {
  return localText(part, { style: "percent", maximumSignificantDigits: digits });
}

const LEAST_CHANCE = 0.0001;

/** @param {number} p Returns what follows the name of a p-value: "= 0.012", or "< 0.0001". */
export const chanceText = (p) =>
  `${p < LEAST_CHANCE ? "<" : "="} ` +
  localText(Math.max(p, LEAST_CHANCE), { maximumSignificantDigits: 2 });

/** @param {string} time RFC 3339; with an offset from UTC it is that of a local day. */
export function clockText(time) {
  if (!isMoment(time)) return dayText(midnightOf(time), UTC);
  const ms = Date.parse(time);
  const day = dayText(ms);
  return day === dayText(nowMs()) ? hourText(ms) : `${day}, ${hourText(ms)}`;
}

/** @param {number} ms Since the epoch. */
export const momentText = (ms) => clockText(new Date(ms).toISOString());

/** @param {number} ms @returns {string} With the name of the zone. */
export const zonedText = (ms) => `${momentText(ms)} ${zoneText(ms)}`;

/** @param {number} ms How long ago. */
export function ageText(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 100) return `${countText(seconds)} s`;
  if (seconds < 6000) return `${countText(seconds / 60)} minutes`;
  if (seconds < 172800) return `${countText(seconds / 3600)} hours`;
  return `${countText(seconds / 86400)} days`;
}

/**
 * A difference of shares in points, always with its sign.
 *
 * @param {number | null} difference
 * @param {number} decimals
 */
export function pointsText(difference, decimals) {
  return difference === null
    ? UNDEFINED
    : localText(100 * difference, { signDisplay: "exceptZero", ...exactly(decimals) });
}

/** @param {{name: string, title?: string | null}} collection */
export const titleOf = ({ name, title }) => nameText(title ?? name);
