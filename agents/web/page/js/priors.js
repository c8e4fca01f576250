// For mechanisms with priors: the Bayesian share, and the test of the priors against the reports.

import { element, figure, say } from "./dom.js";
import {
  chanceText,
  confidenceText,
  countText,
  labelText,
  percentText,
  tickText,
} from "./format.js";
import { fillTable } from "./table.js";

/** @param {Estimate} estimate @param {Domain} domain */
export function drawPriors(estimate, domain) {
  const { mmse, calibration, known_prior: known } = estimate;
  element("priors").hidden = !mmse && !calibration && !known;
  if (known) {
    const shares = known.values ?? [];
    const texts = shares.map(
      ({ name, mean, sd }) =>
        `“${labelText(name, domain)}” ${percentText(mean, 2)} ± ${percentText(sd, 2)}`,
    );
    say(
      element("mmse"),
      known.wrong
        ? `With the known prior no share is given: the reports contradict it (p ${chanceText(known.p_value)}).`
        : `With the known prior (p ${chanceText(known.p_value)}): ${texts.join(", ")}. The shares above need none.`,
    );
  }
  if (mmse) {
    const level = confidenceText(estimate.confidence ?? 0);
    say(
      element("mmse"),
      mmse.withheld
        ? `With the devices' priors no share of “${labelText(mmse.value, domain)}” is given: ${mmse.withheld}.`
        : `With the devices' priors, ${percentText(mmse.share, 2)} have “${labelText(mmse.value, domain)}”, ` +
            `${level} credible between ${percentText(mmse.low, 2)} and ${percentText(mmse.high, 2)} ` +
            `(${mmse.method}). It is only as right as the priors; the shares above need none.`,
    );
  }
  if (calibration) drawCalibration(calibration);
}

/** @param {Calibration} calibration */
function drawCalibration(calibration) {
  const { wrong, suspicion, levels, flagged, worst } = calibration;
  const p = chanceText(calibration.p_value);
  say(
    element("calibration"),
    wrong
      ? `The priors are ${suspicion} (p ${p}, below ${tickText(calibration.significance, "")}): ` +
          `${countText(flagged)} of ${countText(levels)} levels contradict their priors by themselves.`
      : `The reports agree with the priors: ${countText(levels)} levels tested, smallest p ${p}.`,
  );
  element("calibration").classList.toggle("alarm", wrong);
  element("calibration-rows").hidden = worst.length === 0;
  fillTable(
    "calibration-rows",
    [
      { title: "prior", kind: "name" },
      { title: "epsilon" },
      { title: "reports" },
      { title: "share of ones" },
      { title: "expected" },
      { title: "p" },
    ],
    worst.map((level) => [
      level.prior.map((edge) => tickText(edge, "", 4)).join(" to "),
      figure(tickText(level.epsilon, ""), level.epsilon),
      figure(countText(level.n), level.n),
      figure(percentText(level.observed, 2), level.observed),
      level.expected.map((share) => percentText(share, 2)).join(" to "),
      figure(chanceText(level.p_value).replace("= ", ""), level.p_value),
    ]),
  );
}
