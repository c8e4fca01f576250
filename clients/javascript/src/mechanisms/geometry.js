// Points of a projective space with t coordinates modulo a prime q (docs/wire.md).

import { SpecError } from "../errors.js";

const LARGEST_Q = 94906265; // products of two coordinates stay below 2^53

export function pointsOf(q, dimension) {
  let points = 0;
  for (let i = 0; i < dimension; i += 1) points = points * q + 1;
  return points;
}

export class Geometry {
  constructor(q, dimension) {
    if (!(Number.isInteger(q) && q >= 2 && q <= LARGEST_Q && pointsOf(q, dimension) <= 2 ** 53)) {
      throw new SpecError("parameters.spaces", "spaces of at most 2^53 points, q below 2^26.5");
    }
    this.q = q;
    this.dimension = dimension;
    this.points = pointsOf(q, dimension);
    this.inside = pointsOf(q, dimension - 1);
  }

  vector(point) {
    const { q, dimension } = this;
    let after = 0;
    while (after + 1 < dimension && pointsOf(q, after + 1) <= point) after += 1;
    const vector = new Array(dimension).fill(0);
    let rest = point - pointsOf(q, after);
    for (let i = dimension - 1; i >= dimension - after; i -= 1) {
      vector[i] = rest % q;
      rest = Math.floor(rest / q);
    }
    vector[dimension - 1 - after] = 1;
    return vector;
  }

  number(vector) {
    const lead = vector.findIndex((entry) => entry > 0);
    const after = this.dimension - 1 - lead;
    const digits = vector.slice(lead + 1).reduce((sum, entry) => sum * this.q + entry, 0);
    return pointsOf(this.q, after) + digits;
  }

  isOrthogonal(value, report) {
    const backward = this.vector(value).reverse();
    const products = this.vector(report).map((entry, i) => (entry * backward[i]) % this.q);
    return products.reduce((sum, entry) => (sum + entry) % this.q, 0) === 0;
  }

  // The point with number `lower` among those orthogonal to `value`.
  complete(value, lower) {
    const { q, dimension } = this;
    const forward = this.vector(value);
    const backward = [...forward].reverse();
    const pivot = dimension - 1 - forward.findIndex((entry) => entry > 0);
    const vector = new Geometry(q, dimension - 1).vector(lower);
    let before = 0;
    for (let i = 0; i < pivot; i += 1) before = (before + ((backward[i] * vector[i]) % q)) % q;
    vector.splice(pivot, 0, (q - before) % q);
    return this.number(vector);
  }
}
