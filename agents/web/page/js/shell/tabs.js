// Tabs after the ARIA pattern: arrow keys move, and only the chosen tab is in the tab order.

import { onKeys, TABS } from "./keys.js";

/**
 * @param {HTMLElement} list With `role=tablist`; its tabs name their panels.
 * @param {(id: string) => void} picked Called with the id of the panel.
 * @returns {(id: string, visible: Set<string>) => void} Shows a panel, and hides tabs.
 */
export function startTabs(list, picked) {
  const tabs = /** @type {HTMLElement[]} */ ([...list.querySelectorAll("[role=tab]")]);
  /** @param {HTMLElement} tab */
  const panelOf = (tab) => tab.getAttribute("aria-controls") ?? "";
  /** @param {HTMLElement} tab */
  const pick = (tab) => {
    tab.focus();
    picked(panelOf(tab));
  };
  list.addEventListener("click", (event) => {
    const tab = /** @type {Element} */ (event.target).closest("[role=tab]");
    if (tab instanceof HTMLElement) pick(tab);
  });
  onKeys(list, TABS, (by) => {
    const shown = tabs.filter((tab) => !tab.hidden);
    const at = shown.indexOf(/** @type {HTMLElement} */ (document.activeElement)) + by;
    // One step past an end leads to the other.
    const place = { [-Infinity]: 0, [Infinity]: -1 }[at] ?? at % shown.length;
    pick(/** @type {HTMLElement} */ (shown.at(place)));
  });
  return (id, visible) => {
    for (const tab of tabs) {
      const mine = panelOf(tab) === id;
      tab.hidden = !visible.has(panelOf(tab));
      tab.setAttribute("aria-selected", String(mine));
      tab.tabIndex = mine ? 0 : -1;
      const panel = document.getElementById(panelOf(tab));
      if (panel) panel.hidden = !mine;
    }
  };
}
