#!/bin/bash
# Renders the chart into tests/ops/manifests, where tests run what the manifests say without helm, and
# checks them against Kubernetes' schemas: make chart, after every change of the chart.
set -euo pipefail
cd "$(dirname "$0")"
OUT=../../tests/ops/manifests
TOOLS=$(readlink -m ../../build/chart) KUBERNETES=1.31
mkdir -p "$TOOLS"
export PATH=$TOOLS:$PATH LC_ALL=C
command -v helm > /dev/null || GOBIN=$TOOLS go install helm.sh/helm/v3/cmd/helm@v3.18.6
[ -x "$TOOLS/venv/bin/kubernetes-validate" ] || {
  python3 -m venv "$TOOLS/venv"
  "$TOOLS/venv/bin/pip" install --quiet kubernetes-validate==1.37.0
}
helm lint --quiet . 2> >(grep -v 'found symbolic link' >&2)
for values in "$OUT"/*-values.yaml; do
  manifests=${values%-values.yaml}.yaml
  helm template ldpstream . --kube-version $KUBERNETES.0 -f "$values" 2> >(grep -v 'found symbolic link' >&2) > "$manifests.new"
  # --strict refuses unknown fields; kinds of the operators have no schema there, which it says.
  "$TOOLS/venv/bin/kubernetes-validate" --quiet --strict -k $KUBERNETES "$manifests.new"
  # Every alert leads to the runbook where one is named, and nowhere else.
  [ "$(grep -c ' runbook_url: ' "$manifests.new")" = "$(grep -q '^ *runbook:' "$values" && grep -c 'alert: ' "$manifests.new" || echo 0)" ]
  # The digest tells a test without helm that the chart has changed since. Rules are those of docker/prometheus.
  echo "# Made by make chart of $(cat Chart.yaml values.yaml templates/* "$values" | sha256sum | cut -d' ' -f1)" > "$manifests"
  awk 'BEGIN { RS = ORS = "---\n" } !/kind: PrometheusRule/' "$manifests.new" | sed '$ { /^---$/d }' >> "$manifests"
  rm "$manifests.new"
done
