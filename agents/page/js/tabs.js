// Tabs after the ARIA pattern: arrow keys move, and only the chosen tab is in the tab order.

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
  list.addEventListener("keydown", (event) => {
    const shown = tabs.filter((tab) => !tab.hidden);
    const at = shown.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const last = shown.length - 1;
    /** @type {Record<string, number>} */
    const moves = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last };
    if (!(event.key in moves) || at < 0) return;
    event.preventDefault();
    pick(shown[(moves[event.key] + shown.length) % shown.length]);
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
