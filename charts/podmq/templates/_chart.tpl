{{- define "podmq.labels" -}}
app.kubernetes.io/name: podmq
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/*
podmq.cel turns YAML into a CEL literal. CEL in Kubernetes wants the values of a
map or list to be of one type; dyn() around each makes them so.
*/}}
{{- define "podmq.cel" -}}
{{- if kindIs "map" . -}}
  {{- $members := list -}}
  {{- range $key, $value := . -}}
    {{- $members = append $members (printf "%s: %s" (toJson $key) (include "podmq.cel" $value)) -}}
  {{- end -}}
  dyn({ {{- join ", " $members -}} })
{{- else if kindIs "slice" . -}}
  {{- $items := list -}}
  {{- range . }}{{ $items = append $items (include "podmq.cel" .) }}{{ end -}}
  dyn([ {{- join ", " $items -}} ])
{{- else -}}
  dyn({{ toJson . }})
{{- end -}}
{{- end -}}

{{/* podmq.injected is what podmq.io/injected says: the version, and a digest of all that is injected. */}}
{{- define "podmq.injected" -}}
{{- $settings := printf "%s\n%s\n%s" (include "podmq.brokerOf" .) (include "podmq.volume" .) (toJson .Values.sidecar.imagePullSecrets) -}}
{{- printf "%s-%s" (include "podmq.version" .) (sha256sum $settings | trunc 8) -}}
{{- end -}}

{{/* podmq.brokerOf is the container that this release injects. */}}
{{- define "podmq.brokerOf" -}}
{{- include "podmq.container" (dict "values" .Values.sidecar "podUser" -1) -}}
{{- end -}}

{{/*
podmq.excluded is the list of namespaces that are left alone, for a
namespaceSelector.
*/}}
{{- define "podmq.excluded" -}}
{{- prepend .Values.injection.excludedNamespaces "kube-system" | uniq | toJson -}}
{{- end -}}

{{/*
podmq.bindings binds a policy to the pods that asked: one binding for namespaces
with the label, one for pods. Other pods of the cluster never meet a policy of
this chart.

kind     of the binding
policy   the policy's name
actions  validationActions, for validating policies
*/}}
{{- define "podmq.bindings" -}}
{{- $ := . -}}
{{- range $by := list "namespaces" "pods" }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: {{ $.kind }}
metadata:
  name: {{ $.policy }}-{{ $by }}
  labels:
    {{- include "podmq.labels" $.root | nindent 4 }}
spec:
  policyName: {{ $.policy }}
  {{- with $.actions }}
  validationActions: {{ toJson . }}
  {{- end }}
  matchResources:
    namespaceSelector:
      matchExpressions:
      - key: kubernetes.io/metadata.name
        operator: NotIn
        values: {{ include "podmq.excluded" $.root }}
      {{- if eq $by "namespaces" }}
      - key: podmq.io/inject
        operator: In
        values: ["true"]
      {{- else }}
    objectSelector:
      matchLabels:
        podmq.io/inject: "true"
      {{- end }}
{{- end }}
{{- end -}}
