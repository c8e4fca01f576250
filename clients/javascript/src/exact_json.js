// JSON with integers that no double holds, such as codes of 17 digits: they become texts.

const TOKENS = /"(?:[^"\\]|\\.)*"|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/g;
const WHOLE = /^-?[0-9]{16,}$/;

export function parseExactly(text) {
  return JSON.parse(
    text.replace(TOKENS, (token) =>
      WHOLE.test(token) && !Number.isSafeInteger(Number(token)) ? `"${token}"` : token,
    ),
  );
}
