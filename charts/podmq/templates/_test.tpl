{{- define "podmq.testPod" -}}
restartPolicy: Never
automountServiceAccountToken: false
initContainers:
{{ include "podmq.testStep" (dict "root" . "name" "publish" "args" (list "publish" "helm-test" "first")) }}
{{ include "podmq.testStep" (dict "root" . "name" "poll-and-ack" "args" (list "poll" "helm-test" "test" "--ack" "--max=1" "--wait=10s")) }}
containers:
{{ include "podmq.testStep" (dict "root" . "name" "publish-again" "args" (list "publish" "helm-test" "second")) }}
{{- end -}}

{{- define "podmq.testStep" -}}
{{- $sidecar := .root.Values.sidecar -}}
- name: {{ .name }}
  image: {{ include "podmq.image" $sidecar.image | toJson }}
  imagePullPolicy: {{ $sidecar.image.pullPolicy }}
  args: {{ toJson .args }}
  resources:
    requests: {cpu: 10m, memory: 16Mi}
    limits: {memory: 64Mi}
  securityContext:
    {{- toYaml $sidecar.securityContext | nindent 4 }}
{{- end -}}
