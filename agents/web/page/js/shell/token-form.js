// The form for the token, if the worker requires one.

import { keepToken, token } from "../api.js";
import { element, say } from "../dom.js";

const form = () => /** @type {HTMLFormElement} */ (element("token-form"));
const field = () => /** @type {HTMLInputElement} */ (element("token"));

/** @param {() => void} given Called once a token is entered. */
export function startTokenForm(given) {
  form().addEventListener("submit", (event) => {
    event.preventDefault();
    keepToken(field().value.trim());
    field().value = "";
    showTokenForm(false);
    given();
  });
}

/** @param {boolean} wanted */
export function showTokenForm(wanted) {
  const has = token() !== "";
  say(element("token-refused"), wanted && has ? "That is not the token." : "");
  document.body.classList.toggle("locked", wanted);
  // A link carries no token.
  element("open-links").hidden = wanted || has;
  if (form().hidden !== wanted) return;
  form().hidden = !wanted;
  if (wanted) field().focus();
}
