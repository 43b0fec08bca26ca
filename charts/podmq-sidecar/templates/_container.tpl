{{/* podmq.version is the version of chart and program; a test holds it equal to Chart.yaml. */}}
{{- define "podmq.version" -}}
0.1.0
{{- end -}}

{{/*
podmq.container is the broker: a native sidecar, which starts before and stops
after every other container, and which a Job does not wait for.

values   the chart's values
podUser  securityContext.runAsUser of the pod, -1 when it has none
*/}}
{{- define "podmq.container" -}}
{{- $v := .values -}}
{{- $security := deepCopy $v.securityContext -}}
{{- if and (eq (int64 .podUser) 0) (not (hasKey $security "runAsUser")) -}}
  {{- /* Inherited, 0 would break runAsNonRoot, and the pod would wait for ever. */ -}}
  {{- $_ := set $security "runAsUser" 65532 -}}
{{- end -}}
name: podmq
image: {{ include "podmq.image" $v.image | toJson }}
imagePullPolicy: {{ $v.image.pullPolicy }}
restartPolicy: Always
args: [serve]
ports:
- name: podmq-metrics
  containerPort: {{ int $v.metricsPort }}
  protocol: TCP
env:
{{ include "podmq.env" $v }}
resources:
  {{- range $kind := list "limits" "requests" }}
  {{ $kind }}:
    {{- range $name, $quantity := get $v.resources $kind }}
    {{ $name }}: {{ include "podmq.quantity" $quantity | quote }}
    {{- end }}
  {{- end }}
securityContext:
  {{- toYaml $security | nindent 2 }}
lifecycle:
  postStart:
    exec:
      command: [/sidecar, probe, {{ printf "--wait=%s" $v.postStart.wait | toJson }}]
{{- include "podmq.probes" $v }}
terminationMessagePolicy: FallbackToLogsOnError
volumeMounts:
- name: podmq
  mountPath: /run/podmq
{{- end -}}

{{- define "podmq.image" -}}
{{- if .digest -}}
  {{- printf "%s@%s" .repository .digest -}}
{{- else -}}
  {{- printf "%s:%s" .repository (.tag | default (include "podmq.version" .)) -}}
{{- end -}}
{{- end -}}

{{- define "podmq.probes" -}}
{{- with .livenessProbe }}{{ if ne .type "none" }}
livenessProbe:
  {{- if eq .type "exec" }}
  exec:
    command: [/sidecar, probe]
  {{- else }}
  httpGet:
    path: /livez
    port: podmq-metrics
  {{- end }}
  {{- include "podmq.probeTimes" . | nindent 2 }}
{{- end }}{{ end }}
{{- with .readinessProbe }}{{ if .enabled }}
readinessProbe:
  httpGet:
    path: /readyz
    port: podmq-metrics
  {{- include "podmq.probeTimes" . | nindent 2 }}
{{- end }}{{ end }}
{{- end -}}

{{- define "podmq.probeTimes" -}}
periodSeconds: {{ int .periodSeconds }}
timeoutSeconds: {{ int .timeoutSeconds }}
failureThreshold: {{ int .failureThreshold }}
{{- end -}}

{{/* podmq.env is the broker's settings. What is left out is the program's default. */}}
{{- define "podmq.env" -}}
{{- $env := list
  (dict "name" "PODMQ_SOCKET" "value" "/run/podmq/podmq.sock")
  (dict "name" "PODMQ_SIDECAR_MODE" "value" "native")
  (dict "name" "PODMQ_METRICS_ADDR" "value" (printf ":%d" (int .metricsPort)))
  (dict "name" "GOMAXPROCS" "value" (toString (int .gomaxprocs))) -}}
{{- $settings := .settings -}}
{{- range $name, $value := dict
  "PODMQ_TOPICS" (include "podmq.topics" .)
  "PODMQ_GROUPS" (include "podmq.groups" .)
  "PODMQ_PARTITIONS" (include "podmq.number" $settings.partitions)
  "PODMQ_CAPACITY" (include "podmq.number" $settings.capacity)
  "PODMQ_ACK_TIMEOUT" $settings.ackTimeout
  "PODMQ_MAX_BYTES" $settings.maxBytes
  "PODMQ_MAX_MESSAGE_BYTES" $settings.maxMessageBytes
  "PODMQ_TOPIC_ADMIN" (ternary "" "false" $settings.topicAdmin)
  "PODMQ_HTTP_ADDR" $settings.httpAddr
  "PODMQ_SOCKET_MODE" $settings.socketMode
  "PODMQ_METRICS_PARTITIONS" (ternary "" "false" $settings.metricsPartitions)
  "PODMQ_LOG_LEVEL" (ternary "" $settings.logLevel (eq $settings.logLevel "info"))
  "PODMQ_LOG_FORMAT" (ternary "" $settings.logFormat (eq $settings.logFormat "json")) -}}
  {{- if $value -}}
    {{- $env = append $env (dict "name" $name "value" $value) -}}
  {{- end -}}
{{- end -}}
{{- /* Given twice, the last would win; and the policy writes the pod's own topics into the first. */ -}}
{{- $owned := dict "PODMQ_TOPICS" "topics" "PODMQ_GROUPS" "topics, whose groups have settings" "PODMQ_METRICS_ADDR" "metricsPort"
  "GOMAXPROCS" "gomaxprocs" "PODMQ_SOCKET" "nothing, because every container looks for the socket there" -}}
{{- range $extra := .extraEnv -}}
  {{- with get $owned $extra.name }}{{ fail (printf "podmq: extraEnv cannot set %s: what sets it is %s" $extra.name .) }}{{ end -}}
{{- end -}}
{{- concat $env .extraEnv | toYaml -}}
{{- end -}}

{{/* podmq.quantity writes a quantity, which may be given as a number, as text. */}}
{{- define "podmq.quantity" -}}
{{- if kindIs "string" . }}{{ . }}{{ else if eq (float64 (int64 .)) (float64 .) }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- end -}}

{{/* podmq.number writes a number as a whole one: Helm reads 1000000 as 1e+06. */}}
{{- define "podmq.number" -}}
{{- if not (kindIs "invalid" .) }}{{ int64 . }}{{ end -}}
{{- end -}}
