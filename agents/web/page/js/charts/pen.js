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
 * @param {CanvasRenderingContext2D} pen
 * @param {[number, number][]} points
 * @param {number[]} [dash]
 */
export function stroke(pen, points, dash = []) {
  pen.setLineDash(dash);
  pen.beginPath();
  for (const [x, y] of points) pen.lineTo(x, y);
  pen.stroke();
  pen.setLineDash([]);
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
