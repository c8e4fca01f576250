{{- define "ldpstream.labels" -}}
app.kubernetes.io/name: ldpstream
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* What all pods have in common; the container's own part follows it. */}}
{{- define "ldpstream.pod" -}}
automountServiceAccountToken: false
# A Service of this name would put LDPSTREAM_... variables into the environment.
enableServiceLinks: false
terminationGracePeriodSeconds: 60
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: { type: RuntimeDefault }
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector: { matchLabels: {{ include "ldpstream.labels" . | fromYaml | toJson }} }
{{- end }}

{{- define "ldpstream.container" -}}
image: "{{ .root.Values.image.repository }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}"
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
ports: [{ name: http, containerPort: {{ .port }} }]
# Ready needs the broker; a restart helps only where /healthz fails.
startupProbe: { httpGet: { path: /healthz, port: http }, periodSeconds: 5, failureThreshold: 60 }
livenessProbe: { httpGet: { path: /healthz, port: http }, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 }
readinessProbe: { httpGet: { path: /readyz, port: http }, periodSeconds: 5, timeoutSeconds: 5 }
resources: {{ .resources | toJson }}
volumeMounts:
  - { name: config, mountPath: /etc/ldpstream, readOnly: true }
  - { name: read-token, mountPath: /run/secrets/ldpstream, readOnly: true }
  - { name: tmp, mountPath: /tmp }
{{- end }}

{{- define "ldpstream.volumes" -}}
- { name: config, configMap: { name: {{ .Release.Name }} } }
- { name: read-token, secret: { secretName: {{ .Values.readTokenSecret }} } }
- { name: tmp, emptyDir: { medium: Memory, sizeLimit: 64Mi } }
{{- end }}

{{/* A pod is started again where its configuration changes. */}}
{{- define "ldpstream.annotations" -}}
checksum/config: {{ include (print .Template.BasePath "/config.yaml") . | sha256sum }}
{{- end }}

{{- define "ldpstream.disruption" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: { name: {{ .name }}, labels: {{ .labels | toJson }} }
spec: { maxUnavailable: 1, selector: { matchLabels: {{ .labels | toJson }} } }
{{- end }}
