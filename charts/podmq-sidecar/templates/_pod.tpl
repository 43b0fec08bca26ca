{{/*
podmq.podSpec takes a pod spec and returns it with the broker: the one template
that a chart includes.

  spec:
    template:
      spec:
        {{- include "podmq.podSpec" (dict "root" $ "spec" (include "orders.pod" $)) | nindent 8 }}

root    the chart's own context
spec    the pod spec, as YAML text or as a map
values  what differs from the values of the dependency, for a chart with several
        kinds of pods; with an alias for the dependency, its values in full
*/}}
{{- define "podmq.podSpec" -}}
{{- $values := include "podmq.values" . | fromJson -}}
{{- $spec := .spec -}}
{{- if kindIs "string" $spec -}}
  {{- $spec = fromYaml $spec -}}
  {{- if hasKey $spec "Error" -}}
    {{- fail (printf "podmq: cannot read the pod spec: %s" $spec.Error) -}}
  {{- end -}}
{{- end -}}
{{- $spec = deepCopy ($spec | default dict) -}}
{{- include "podmq.checkPod" $spec -}}
{{- $user := dig "runAsUser" -1 ($spec.securityContext | default dict) -}}
{{- $broker := include "podmq.container" (dict "values" $values "podUser" $user) | fromYaml -}}
{{- range $list := list "initContainers" "containers" -}}
  {{- $containers := list -}}
  {{- range $container := get $spec $list | default list -}}
    {{- $containers = append $containers (include "podmq.client" $container | fromYaml) -}}
  {{- end -}}
  {{- if eq $list "initContainers" -}}
    {{- $containers = prepend $containers $broker -}}
  {{- end -}}
  {{- $_ := set $spec $list $containers -}}
{{- end -}}
{{- $_ := set $spec "volumes" (append ($spec.volumes | default list) (include "podmq.volume" $ | fromYaml)) -}}
{{- with $values.imagePullSecrets -}}
  {{- $_ := set $spec "imagePullSecrets" (concat ($spec.imagePullSecrets | default list) . | uniq) -}}
{{- end -}}
{{- toYaml $spec -}}
{{- end -}}

{{/* podmq.values is the settings of one pod, as JSON. */}}
{{- define "podmq.values" -}}
{{- $values := get .root.Values "podmq-sidecar" | default dict -}}
{{- $values = mustMergeOverwrite (deepCopy $values) (deepCopy (.values | default dict)) -}}
{{- if not $values.image -}}
  {{- fail "podmq: there are no values for the sidecar; with an alias for the dependency podmq-sidecar, hand its values to podmq.podSpec, as in (dict \"root\" $ \"spec\" … \"values\" .Values.ALIAS)" -}}
{{- end -}}
{{- toJson $values -}}
{{- end -}}

{{/* podmq.checkPod refuses the pods that cannot have a broker. */}}
{{- define "podmq.checkPod" -}}
{{- if .hostNetwork -}}
  {{- fail "podmq: a pod with hostNetwork cannot have the broker, whose metrics port would be the node's" -}}
{{- end -}}
{{- if has "windows" (list (get (.os | default dict) "name") (get (.nodeSelector | default dict) "kubernetes.io/os")) -}}
  {{- fail "podmq: a Windows pod cannot have the broker, which needs Linux" -}}
{{- end -}}
{{- range concat (.initContainers | default list) (.containers | default list) -}}
  {{- if eq .name "podmq" -}}
    {{- fail "podmq: the pod spec has a container named podmq already; rename it, or include podmq.podSpec once only" -}}
  {{- end -}}
{{- end -}}
{{- range .volumes -}}
  {{- if eq .name "podmq" -}}
    {{- fail "podmq: the pod spec has a volume named podmq already; rename it" -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/*
podmq.client returns a container with the socket: its directory, read-only, so
that no app can unlink or replace the socket, and its path in PODMQ_SOCKET,
first, so that the container's own variables may refer to $(PODMQ_SOCKET).
*/}}
{{- define "podmq.client" -}}
{{- $container := deepCopy . -}}
{{- $names := list -}}
{{- range .env }}{{ $names = append $names .name }}{{ end -}}
{{- if not (has "PODMQ_SOCKET" $names) -}}
  {{- $_ := set $container "env" (prepend (.env | default list) (include "podmq.socketEnv" . | fromYaml)) -}}
{{- end -}}
{{- $paths := list -}}
{{- range .volumeMounts }}{{ $paths = append $paths (trimSuffix "/" .mountPath) }}{{ end -}}
{{- if not (has "/run/podmq" $paths) -}}
  {{- $_ := set $container "volumeMounts" (append (.volumeMounts | default list) (include "podmq.socketMount" . | fromYaml)) -}}
{{- end -}}
{{- toYaml $container -}}
{{- end -}}

{{- define "podmq.socketEnv" -}}
name: PODMQ_SOCKET
value: /run/podmq/podmq.sock
{{- end -}}

{{- define "podmq.socketMount" -}}
name: podmq
mountPath: /run/podmq
readOnly: true
{{- end -}}

{{/*
podmq.volume holds the socket and nothing else. In memory, because a full disk
must not evict the pod for it; 1Mi, so that nobody fills the pod's memory there.
*/}}
{{- define "podmq.volume" -}}
name: podmq
emptyDir:
  medium: Memory
  sizeLimit: 1Mi
{{- end -}}
