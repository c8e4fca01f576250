// Strokes, points and texts that are kept apart.

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {string} shape
 * @param {number} x
 * @param {number} y
 * @param {string} fill
 */
export function point(pen, shape, x, y, fill) {
  pen.save();
  pen.translate(x, y);
  pen.fillStyle = fill;
  const path = new Path2D(shape);
  pen.fill(path);
  pen.stroke(path);
  pen.restore();
}

/**
 * A line from point to point.
 *
 * @param {CanvasRenderingContext2D} pen
 * @param {number[]} points The x and the y of each, in turn.
 * @param {number[]} [dash]
 */
export function stroke(pen, points, dash = []) {
  pen.setLineDash(dash);
  pen.beginPath();
  for (let at = 0; at < points.length; at += 2) pen.lineTo(points[at], points[at + 1]);
  pen.stroke();
  pen.setLineDash([]);
}

/** @param {CanvasRenderingContext2D} pen @param {string} ink @param {number} size Of a tile. */
export function hatching(pen, ink, size) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = size;
  const own = /** @type {CanvasRenderingContext2D} */ (tile.getContext("2d"));
  own.strokeStyle = ink;
  for (const at of [-size, 0, size]) stroke(own, [at, size, at + size, 0]);
  return /** @type {CanvasPattern} */ (pen.createPattern(tile, "repeat"));
}

/**
 * Move texts apart, in a column from `low` to `high`: in their order, each as near as it can be.
 *
 * @param {number[]} wanted
 * @param {number} gap Shrinks if there is no room.
 * @param {number} low
 * @param {number} high
 */
export function apart(wanted, gap, low, high) {
  const order = wanted.map((_, at) => at).sort((a, b) => wanted[a] - wanted[b]);
  const step = Math.min(gap, (high - low) / Math.max(1, wanted.length - 1));
  const found = [...wanted];
  let next = low;
  for (const at of order) {
    found[at] = Math.max(wanted[at], next);
    next = found[at] + step;
  }
  next = high;
  for (const at of order.reverse()) {
    found[at] = Math.min(found[at], next);
    next = found[at] - step;
  }
  return found;
}
