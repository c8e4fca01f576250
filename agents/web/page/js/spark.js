// A sparkline with bounds over windows, for a cell of a table, with its own scale.

const NAMESPACE = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT] = [100, 30]; // Stretched to the cell, without stretching strokes.

/**
 * @param {Point[]} points Oldest first; those without a number are left out, and spans are as wide as
 *   the windows that are shown only together.
 * @returns {SVGElement | string}
 */
export function spark(points) {
  const spans = points.map(({ spot: { window } }) => [window.start, window.end].map(Date.parse));
  const size = Math.min(...spans.map(([start, end]) => end - start));
  const known = points.flatMap(({ middle, low, high }, at) =>
    middle === null || low === null || high === null
      ? []
      : [...new Set([spans[at][0], spans[at][1] - size])].map((time) => ({
          time,
          middle,
          low,
          high,
        })),
  );
  if (known.length < 2) return "";
  const [first, last] = [known[0], known[known.length - 1]];
  const least = Math.min(...known.map(({ low, middle }) => Math.min(low, middle)));
  const most = Math.max(...known.map(({ high, middle }) => Math.max(high, middle)));
  /** @param {number} time @param {number} value */
  const at = (time, value) => {
    const x = (WIDTH * (time - first.time)) / (last.time - first.time);
    const y = most > least ? (HEIGHT * (most - value)) / (most - least) : HEIGHT / 2;
    return `${x.toFixed(1)} ${y.toFixed(1)}`;
  };
  const band = [
    ...known.map(({ time, high }) => at(time, high)),
    ...known.toReversed().map(({ time, low }) => at(time, low)),
  ];
  const line = known.map(({ time, middle }) => at(time, middle));
  return drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "spark" }, [
    drawn("path", { class: "band", d: `M${band.join("L")}Z` }),
    drawn("path", { class: "line", d: `M${line.join("L")}` }),
    drawn("path", { class: "dot", d: `M${at(last.time, last.middle)}h0` }),
  ]);
}

/**
 * @param {"svg" | "path"} tag
 * @param {Record<string, string>} attributes
 * @param {SVGElement[]} [children]
 * @returns {SVGElement}
 */
export function drawn(tag, attributes, children = []) {
  const made = document.createElementNS(NAMESPACE, tag);
  const all =
    tag === "svg"
      ? { ...attributes, preserveAspectRatio: "none", "aria-hidden": "true" }
      : attributes;
  for (const [name, value] of Object.entries(all)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
