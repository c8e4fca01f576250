// Live estimates with their bounds: asks the API of the worker that served this page, and draws.
// Labels come from the configuration and enter the page as text only.

const POLL_MS = 2000;
const NEWEST_WINDOWS = 50;

const element = (id) => document.getElementById(id);
const choice = (id) => element(id).value;

async function ask(path) {
  const answer = await fetch(path, { cache: "no-store" });
  const body = await answer.json();
  if (!answer.ok) {
    const failure = new Error(body.error ?? `the worker answered ${answer.status}`);
    failure.status = answer.status;
    throw failure;
  }
  return body;
}

function label(value) {
  if (value === null) return "undefined";
  return Array.isArray(value) ? `[${value.join(", ")}]` : String(value);
}

function percent(share) {
  return share === null ? "undefined" : `${(100 * share).toFixed(2)}%`;
}

function cell(text, kind = "") {
  const made = document.createElement("td");
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function piece(kind, left, width) {
  const made = document.createElement("i");
  made.className = kind;
  made.style.left = `${left}%`;
  if (width !== undefined) made.style.width = `${width}%`;
  return made;
}

// The scale of all bars of a table: from the lowest bound (or 0) to the highest.
function scaleOf(entries) {
  const known = entries.filter((entry) => entry.low !== null && entry.high !== null);
  const low = Math.min(0, ...known.map((entry) => entry.low));
  const high = Math.max(0, ...known.map((entry) => entry.high));
  return { low, width: high > low ? high - low : 1 };
}

function bar(entry, scale) {
  const box = document.createElement("td");
  const line = document.createElement("div");
  line.className = "bar";
  line.setAttribute("aria-hidden", "true");
  const at = (share) => (100 * (share - scale.low)) / scale.width;
  line.append(piece("zero", at(0)));
  if (entry.low !== null && entry.high !== null) {
    line.append(piece("span", at(entry.low), at(entry.high) - at(entry.low)));
  }
  if (entry.share !== null) line.append(piece("mark", at(entry.share)));
  box.append(line);
  return box;
}

function shareRow(name, entry, scale) {
  const row = document.createElement("tr");
  row.append(
    cell(name),
    cell(percent(entry.share)),
    bar(entry, scale),
    cell(percent(entry.low)),
    cell(percent(entry.high)),
    cell(entry.count === null ? "" : Math.round(entry.count).toLocaleString("en"), "wide"),
  );
  return row;
}

function fill(section, body, rows) {
  element(section).hidden = rows.length === 0;
  element(body).replaceChildren(...rows);
}

function counted(number, what) {
  return number === undefined ? "" : `${number.toLocaleString("en")} ${what}`;
}

// Whoever watches an open window looks many times: only anytime bounds hold at all of these moments.
const WATCHED = "anytime";

function moments(method, final) {
  if (method.startsWith(WATCHED)) {
    return "at every moment of the window at once, however often you look";
  }
  return final ? "for the window as a whole, now that it is closed" : "at one moment only";
}

function draw(estimate) {
  const { window, final, withheld } = estimate;
  element("facts").textContent = [
    window ? `${window.start} to ${window.end} (${final ? "final" : "open"})` : "all reports",
    counted(estimate.n, "reports"),
    counted(estimate.late, "late"),
    counted(estimate.rejected, "rejected so far"),
    withheld ? "withheld: too few reports" : "",
  ].filter(Boolean).join(" · ");
  const values = estimate.distribution ?? [];
  const ranges = estimate.ranges ?? [];
  const quantiles = estimate.quantiles ?? [];
  if (!withheld) {
    const level = `${Number((100 * estimate.confidence).toPrecision(6))}%`;
    const whole = estimate.simultaneous ? "for all values together" : "for each value by itself";
    element("bounds").textContent =
      `Bounds hold with ${level} confidence ${whole}, ${moments(estimate.method, final)} ` +
      `(${estimate.method}, ${estimate.estimand}). ` +
      "Estimates are unbiased and not clipped, so small ones can be below 0.";
  }
  const scale = scaleOf(values);
  fill("distribution", "values", values.map((v) => shareRow(label(v.value), v, scale)));
  const rangeScale = scaleOf(ranges);
  fill("ranges", "range-rows", ranges.map((r) => shareRow(r.name, r, rangeScale)));
  fill("quantiles", "quantile-rows", quantiles.map((q) => {
    const row = document.createElement("tr");
    row.append(cell(percent(q.p)), cell(label(q.value)), cell(label(q.low)), cell(label(q.high)));
    return row;
  }));
}

// Replaces the options of a list and keeps what was chosen, unless it is gone.
function offer(id, options) {
  const list = element(id);
  const before = list.value;
  list.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
  if (options.some(([value]) => value === before)) list.value = before;
}

function spanOf({ window: { start, end } }) {
  return `start=${encodeURIComponent(start)}&end=${encodeURIComponent(end)}`;
}

async function refresh(mine) {
  const { collections } = await ask("api/collections");
  offer("collection", collections.map((one) => [one.name, one.name]));
  if (!choice("collection")) return "No collection is configured.";
  const own = `api/collections/${encodeURIComponent(choice("collection"))}`;
  const { windows } = await ask(`${own}/windows?last=${NEWEST_WINDOWS}`);
  offer("window", [["", "newest"], ...[...windows].reverse().map((one) => [
    spanOf(one),
    `${one.window.start} to ${one.window.end}${one.final ? "" : " (open)"}`,
  ])]);
  if (windows.length === 0) return "No reports have been counted yet.";
  const span = choice("window");
  const shown = span ? windows.find((one) => spanOf(one) === span) : windows.at(-1);
  const { method } = collections.find((one) => one.name === choice("collection"));
  const watched = !shown?.final && !method.startsWith(WATCHED) ? `&method=${WATCHED}` : "";
  const asked = `top=${choice("top")}${span ? `&${span}` : ""}${watched}`;
  const estimate = await ask(`${own}/estimate?${asked}`);
  if (mine === turn) draw(estimate);
  return "";
}

function say(id, text) {
  element(id).textContent = text;
  element(id).hidden = text === "";
}

let turn = 0; // a slow answer must not overwrite the answer to a later choice

async function update() {
  turn += 1;
  const mine = turn;
  try {
    const waiting = await refresh(mine);
    if (mine !== turn) return;
    if (waiting) element("facts").textContent = waiting;
    say("problem", "");
  } catch (failure) {
    if (mine !== turn) return;
    say("problem", failure.status ? failure.message : "The worker does not answer; trying again.");
  }
}

async function poll() {
  if (document.visibilityState === "visible") await update();
  setTimeout(poll, POLL_MS);
}

element("choices").addEventListener("change", update);
element("choices").addEventListener("submit", (event) => event.preventDefault());
poll();
