// The theme: light, dark or the system's; and the page's colours for drawing on a canvas.

import { element, say } from "./dom.js";

const KEY = "ldpstream.theme";
/** @type {Record<string, string>} */
const NEXT = { system: "light", light: "dark", dark: "system" };

/** @type {Record<string, string>} */
const SHOWN = { system: "◐ auto", light: "☀ light", dark: "☾ dark" };

const SYSTEM = matchMedia("(prefers-color-scheme: dark)");

const now = () => document.documentElement.dataset.theme ?? "system";

/** Whether the page is dark now. */
export const isDark = () => (now() === "system" ? SYSTEM.matches : now() === "dark");

/** @param {() => void} changed Called whenever the colours change. */
export function startTheme(changed) {
  const button = element("theme");
  const show = () => {
    say(button, SHOWN[now()]);
    button.setAttribute("aria-label", `Theme: ${SHOWN[now()].slice(2)}`);
  };
  button.addEventListener("click", () => {
    const next = NEXT[now()];
    if (next === "system") {
      delete document.documentElement.dataset.theme;
      localStorage.removeItem(KEY);
    } else {
      document.documentElement.dataset.theme = next;
      localStorage.setItem(KEY, next);
    }
    show();
    changed();
  });
  SYSTEM.addEventListener("change", changed);
  show();
}

/** A hidden element whose computed colour resolves a custom property for the current theme. */
const probe = document.createElement("i");
probe.hidden = true;
document.body.append(probe);

/**
 * Return a colour of the page as `rgb(..)` or `rgba(..)`.
 *
 * @param {string} name A custom property, without the leading dashes.
 */
export function colour(name) {
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}
