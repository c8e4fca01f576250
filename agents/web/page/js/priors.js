// For mechanisms with priors: the Bayesian share, and the test of the priors against the reports.

import { element, figure, say } from "./dom.js";
import { confidenceText, countText, labelText, percentText } from "./format.js";
import { fillTable } from "./table.js";

/** @param {Estimate} estimate */
export function drawPriors(estimate) {
  const { mmse, calibration, known_prior: known } = estimate;
  element("priors").hidden = !mmse && !calibration && !known;
  if (known) {
    const shares = known.values ?? [];
    const texts = shares.map(
      ({ name, mean, sd }) =>
        `“${labelText(name)}” ${percentText(mean, 2)} ± ${percentText(sd, 2)}`,
    );
    say(
      element("mmse"),
      known.wrong
        ? `With the known prior no share is given: the reports contradict it (p = ${known.p_value.toPrecision(2)}).`
        : `With the known prior (p = ${known.p_value.toPrecision(2)}): ${texts.join(", ")}. The shares above need none.`,
    );
  }
  if (mmse) {
    const level = confidenceText(estimate.confidence ?? 0);
    say(
      element("mmse"),
      mmse.withheld
        ? `With the devices' priors no share of “${labelText(mmse.value)}” is given: ${mmse.withheld}.`
        : `With the devices' priors, ${percentText(mmse.share, 2)} have “${labelText(mmse.value)}”, ` +
            `${level} credible between ${percentText(mmse.low, 2)} and ${percentText(mmse.high, 2)} ` +
            `(${mmse.method}). It is only as right as the priors; the shares above need none.`,
    );
  }
  if (calibration) drawCalibration(calibration);
}

/** @param {Calibration} calibration */
function drawCalibration(calibration) {
  const { wrong, suspicion, levels, flagged, worst } = calibration;
  const p = calibration.p_value.toPrecision(2);
  say(
    element("calibration"),
    wrong
      ? `The priors are ${suspicion} (p = ${p}, below ${calibration.significance}): ` +
          `${flagged} of ${levels} levels contradict their priors by themselves.`
      : `The reports agree with the priors: ${levels} levels tested, smallest p = ${p}.`,
  );
  element("calibration").classList.toggle("alarm", wrong);
  const table = /** @type {HTMLTableElement} */ (element("calibration-rows"));
  table.hidden = worst.length === 0;
  fillTable(
    table,
    [
      { title: "prior", kind: "name" },
      { title: "epsilon" },
      { title: "reports" },
      { title: "share of ones" },
      { title: "expected" },
      { title: "p" },
    ],
    worst.map((level) => [
      level.prior.map((edge) => Number(edge.toPrecision(4))).join(" to "),
      figure(String(level.epsilon), level.epsilon),
      figure(countText(level.n), level.n),
      figure(percentText(level.observed, 2), level.observed),
      level.expected.map((share) => percentText(share, 2)).join(" to "),
      figure(level.p_value.toPrecision(2), level.p_value),
    ]),
  );
}
