// The page: reads the choices, fetches the data, and lets a view draw them.

import { noteAnswer, sinceText, startAge } from "./shell/age.js";
import { ask, AnswerError, beginAsking, GONE } from "./api.js";
import { aboutAttribute } from "./attributes.js";
import { isOffered, methodFor } from "./bounds.js";
import { cdfView } from "./views/cdf-view.js";
import { adjust, choose, chosen } from "./choices.js";
import { crossedView, startCrossed } from "./views/crossed-view.js";
import { element, offer, say, select, tellExact } from "./dom.js";
import { loadCharts, restyleCharts } from "./charts/charts.js";
import { drawFacts, forgetFacts } from "./facts.js";
import { chooseZone, isLocal, titleOf } from "./format.js";
import { drawHealth, statusOf } from "./health.js";
import { startKeys } from "./shell/keys.js";
import { follow } from "./live.js";
import { mapView, startMap } from "./views/map-view.js";
import { healthView } from "./views/health-view.js";
import { drawOverview } from "./views/overview.js";
import { countMissed, isPaused, startPause } from "./shell/pause.js";
import { drawPrivacy, privacyView } from "./views/privacy-view.js";
import { forgetSharing, offerSharing, startSharing } from "./shell/sharing.js";
import { drawStrip } from "./strip.js";
import { startTabs } from "./shell/tabs.js";
import { startTheme } from "./theme.js";
import { startTime, timeView } from "./views/time-view.js";
import { showTokenForm, startTokenForm } from "./shell/token-form.js";
import { refreshTip, startTooltip } from "./charts/tooltip.js";
import { offersAreas, startSearch, valuesView } from "./views/values-view.js";
import { askChange } from "./views/changes.js";
import { drawCompared, startCompared } from "./views/compared.js";
import { comparedWindow, noteExpired, pickWindow, startWindows, windowsOf } from "./windows.js";

const REST_MS = 3000;
const LISTS = /** @type {const} */ (["top", "method", "measure"]); // With fixed options.
// A collection opens on the first that fits: what single cells of a grid or bins of a line have is noise.
const VIEWS = [mapView, cdfView, valuesView, crossedView, timeView, privacyView, healthView];

let turn = 0; // Counts choices: a slow answer must not overwrite the answer to a later choice.
let followed = "";
let unfollow = () => {};
let begun = 0; // When the newest refresh began.
let due = 0; // The timer of the next.
let busy = false;
let again = false;
/** @type {(id: string, visible: Set<string>) => void} */
let showTab = () => {};

/** @param {boolean} streaming */
function tellLive(streaming) {
  say(element("live"), streaming ? "Live" : "Polling");
}

/** @param {string} text */
function tellProblem(text) {
  say(element("problem"), text);
  element("problem").hidden = text === "";
}

/**
 * Fetch what is chosen, and draw it.
 *
 * @param {() => boolean} current
 */
async function refresh(current) {
  /** @type {{collections: Collection[]}} */
  const { collections } = await ask("api/collections");
  if (!current()) return;
  offer(
    select("collection"),
    collections.map((one) => [one.name, titleOf(one)]),
    chosen("collection"),
  );
  const configured = collections.find(({ name }) => name === select("collection").value);
  if (!configured) {
    say(element("waiting"), "No collection is configured.");
    return;
  }
  const collection = aboutAttribute(configured);
  if (collection.name !== followed) {
    forgetFacts();
    forgetSharing();
  }
  followCollection(collection.name);
  for (const option of select("method").options) {
    option.hidden = option.disabled = !isOffered(collection, option.value);
  }
  const merged = [...select("top").options].find(({ value }) => value === "areas");
  if (merged) merged.hidden = merged.disabled = !offersAreas(collection);
  const overview = wantsOverview(collections);
  for (const id of ["all", "collection-part", "choices", "tabs", "tools"]) {
    element(id).hidden = overview;
  }
  element("overview").hidden = !overview;
  if (overview) {
    showTab("", new Set());
    document.title = "All collections · ldpstream";
    forgetFacts();
    await drawOverview(collections, current);
    if (!current()) return;
    element("waiting").hidden = true;
    return;
  }
  const view = viewOf(collection);
  element("tools").hidden = view === healthView;
  const [windows, status] = await Promise.all([
    windowsOf(collection.name),
    statusOf(collection.name),
    loadCharts(),
  ]);
  if (!current()) return;
  const compares = view.compares?.(collection) ?? false;
  const window = await pickWindow(collection, windows);
  if (!current()) return;
  select("compare").disabled = !compares;
  const controls = document.querySelector(`#${view.id} .controls`);
  const part = element("compare-part");
  if (view.compares && controls && part.parentElement !== controls) controls.prepend(part);
  if (!window) {
    say(element("waiting"), "No reports have been counted yet. This page shows them as they come.");
    element("waiting").hidden = false;
    forgetFacts();
    forgetSharing();
    drawPrivacy(collection);
    return;
  }
  const method = methodFor(collection, window, chosen("method"));
  beginAsking();
  const compared = compares ? comparedWindow(windows, window) : undefined;
  const change = compared
    ? askChange(collection, window.window, compared.window, method)
    : Promise.resolve(null);
  /** @type {Shown} */
  const shown = { collection, windows, window, compared, change, status, method };
  say(element("waiting"), "Asking the worker for the numbers of this window.");
  element("waiting").hidden = !element("facts").hidden;
  const [estimate] = await Promise.all([
    view.update(shown, current),
    drawCompared(shown, view.id, current),
    drawStrip(shown, current),
  ]);
  if (!current()) return;
  drawFacts(shown, estimate);
  drawHealth(shown, view.id);
  offerSharing(shown, view.id);
  element("waiting").hidden = true;
}

/**
 * With several collections the overview is shown until one of them is chosen.
 *
 * @param {Collection[]} collections
 */
function wantsOverview(collections) {
  if (chosen("view") || chosen("collection")) return chosen("view") === "overview";
  return collections.length > 1;
}

/** @param {Collection} collection */
function viewOf(collection) {
  const fitting = VIEWS.filter((view) => view.fits(collection));
  const view = fitting.find(({ id }) => id === chosen("view")) ?? fitting[0];
  showTab(view.id, new Set(fitting.map(({ id }) => id)));
  const title = element(`tab-${view.id}`).textContent;
  document.title = `${titleOf(collection)}: ${title} · ldpstream`;
  return view;
}

/** @param {string} name */
function followCollection(name) {
  if (name === followed) return;
  unfollow();
  followed = name;
  tellLive(false);
  unfollow = follow(name, () => (isPaused() ? countMissed() : updateSoon()), tellLive);
}

/** Refresh after an event; all collections together not more often than every `REST_MS`. */
function updateSoon() {
  const rest = element("overview").hidden ? 0 : begun + REST_MS - Date.now();
  if (rest <= 0) void update();
  else if (!due) {
    due = window.setTimeout(() => {
      due = 0;
      void update();
    }, rest);
  }
}

/** Show the current choice; answers for earlier choices are no longer drawn. */
function changed() {
  for (const name of LISTS) fit(name);
  turn += 1;
  void update();
}

/** Refresh now, or after the current refresh: never two at a time. */
async function update() {
  if (busy) {
    again = true;
    return;
  }
  busy = true;
  try {
    do {
      again = false;
      await attempt();
    } while (again);
  } finally {
    busy = false;
  }
}

async function attempt() {
  const mine = turn;
  begun = Date.now();
  const current = () => mine === turn;
  try {
    await refresh(current);
    if (!current()) return;
    tellProblem("");
    showTokenForm(false);
    noteAnswer(true);
  } catch (failure) {
    const status = failure instanceof AnswerError ? failure.status : 0;
    if (status !== GONE) noteAnswer(false);
    showTokenForm(status === 401);
    // A window that expired while it was asked for is not in the next list of windows.
    if (status === GONE) {
      noteExpired();
      setTimeout(update, 2000);
    }
    if (status === 401 || status === GONE) tellProblem("");
    else
      tellProblem(
        status
          ? /** @type {Error} */ (failure).message
          : `The worker does not answer; trying again.${sinceText()}`,
      );
    // Nothing is followed before the first success, so try again from here.
    if (!followed) setTimeout(update, 2000);
  }
}

/**
 * Let a list show the choice; a choice that is not in the list is dropped.
 *
 * @param {(typeof LISTS)[number]} name
 */
function fit(name) {
  const options = [...select(name).options];
  const known = options.find(({ value }) => value === chosen(name));
  if (!known && chosen(name)) adjust({ [name]: "" });
  const shown = (chosen(name) && known) || options.find((one) => one.defaultSelected) || options[0];
  select(name).value = shown.value;
}

/** Let times be those of this machine, or UTC. */
function startZone() {
  const button = element("zone");
  const show = () => {
    say(button, `◷ ${isLocal() ? "local" : "UTC"}`);
    button.setAttribute("aria-label", `Times: ${isLocal() ? "local" : "UTC"}`);
  };
  button.addEventListener("click", () => {
    chooseZone(!isLocal());
    show();
    changed();
  });
  show();
}

function start() {
  showTab = startTabs(element("tabs"), (id) => {
    choose({ view: id });
    changed();
  });
  startTheme(() => {
    restyleCharts();
    VIEWS.forEach((view) => view.restyle?.());
    // Charts compute their scales after this task.
    queueMicrotask(refreshTip);
  });
  startZone();
  startMap();
  startCrossed();
  startTokenForm(changed);
  const lists = /** @type {const} */ (["collection", "attribute", "window", "compare", ...LISTS]);
  for (const name of lists) {
    const list = select(name);
    list.addEventListener("change", () => {
      choose(
        name === "collection"
          ? {
              collection: list.value,
              attribute: "",
              window: "",
              compare: "",
              lines: "",
              zoom: "",
              search: "",
            }
          : { [name]: list.value, ...(name === "attribute" ? { lines: "", zoom: "" } : {}) },
      );
      changed();
    });
  }
  element("choices").addEventListener("submit", (event) => event.preventDefault());
  startWindows(changed);
  startPause(changed);
  startTime(changed);
  startSearch(changed);
  startCompared(changed);
  startTooltip();
  startSharing();
  startKeys();
  startAge();
  addEventListener("hashchange", changed);
  addEventListener("pointerover", tellExact);
  changed();
}

start();
