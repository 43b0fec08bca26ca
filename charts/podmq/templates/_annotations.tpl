{{/* podmq.annotationNames is the closed list of what a pod may say. */}}
{{- define "podmq.annotationNames" -}}
podmq.io/topics, podmq.io/groups, podmq.io/memory-limit, podmq.io/memory-request, podmq.io/cpu-request
{{- end -}}

{{/*
podmq.topicPattern and podmq.groupPattern are one entry of podmq.io/topics and
podmq.io/groups, with the bounds that the program has, as regular expressions.
*/}}
{{- define "podmq.topicPattern" -}}
{{- $name := "[A-Za-z0-9][A-Za-z0-9._-]{0,199}" -}}
{{- $partitions := "partitions=([1-9][0-9]{0,2}|10[01][0-9]|102[0-4])" -}}
{{- $capacity := "capacity=([1-9][0-9]{0,6}|10000000)" -}}
{{- $bytes := "max-bytes=(0|[0-9]{1,9}([KMGT]iB?|[kMGT]B?|B))" -}}
{{- $groups := printf "groups= *%s *(, *%s *)*" $name $name -}}
{{- $option := printf "(%s|%s|%s|ack-timeout=%s|%s)" $partitions $capacity $bytes (include "podmq.durationPattern" .) $groups -}}
{{- printf "^%s([?](%s(&%s)*)?)?$" $name $option $option -}}
{{- end -}}

{{- define "podmq.groupPattern" -}}
{{- $name := "[A-Za-z0-9][A-Za-z0-9._-]{0,199}" -}}
{{- $duration := include "podmq.durationPattern" . -}}
{{- $option := printf "(type=(ordered|queue)|start=(latest|earliest)|strategy=(sticky|round-robin)|(session-timeout|max-lease)=%s|expires=(0|%s))" $duration $duration -}}
{{- printf "^%s/%s([?](%s(&%s)*)?)?$" $name $name $option $option -}}
{{- end -}}

{{/* podmq.durationPattern bounds the digits as well: the sum must fit into CEL's durations. */}}
{{- define "podmq.durationPattern" -}}
([0-9]{1,9}([.][0-9]{1,9})?(ns|us|ms|s)|[0-9]{1,6}([.][0-9]{1,9})?m|[0-9]{1,4}([.][0-9]{1,9})?h){1,6}
{{- end -}}

{{/*
podmq.annotationVariables reads the annotations; "annotations" must stand before
it. The topics are the pod's own or the chart's, as entries.
*/}}
{{- define "podmq.annotationVariables" -}}
{{- $chartTopics := list -}}
{{- range .Values.sidecar.topics }}{{ $chartTopics = append $chartTopics .name }}{{ end -}}
- name: unknown
  expression: variables.annotations.filter(a, a.startsWith("podmq.io/") && !(a in {{ splitList ", " (include "podmq.annotationNames" .) | concat (list "podmq.io/injected") | toJson }}))
- name: topics
  expression: >-
    "podmq.io/topics" in variables.annotations
    ? variables.annotations["podmq.io/topics"].replace("\n", ";").split(";").map(e, e.trim()).filter(e, e != "") : {{ toJson $chartTopics }}
- name: groups
  expression: >-
    "podmq.io/groups" in variables.annotations
    ? variables.annotations["podmq.io/groups"].replace("\n", ";").split(";").map(e, e.trim()).filter(e, e != "") : []
- name: topicNames
  expression: variables.topics.map(t, t.split("?")[0])
- name: groupNames
  expression: variables.groups.map(g, g.split("?")[0])
- name: badTopics
  expression: variables.topics.filter(t, !t.matches({{ include "podmq.topicPattern" . | toJson }}))
- name: badGroups
  expression: variables.groups.filter(g, !g.matches({{ include "podmq.groupPattern" . | toJson }}))
- name: options # of each entry that has some, as lists
  expression: >-
    variables.badTopics.size() + variables.badGroups.size() > 0 ? []
    : (variables.topics + variables.groups).filter(e, e.contains("?")).map(e, e.split("?")[1].split("&"))
- name: twice
  expression: >-
    variables.topicNames.filter(n, !variables.topicNames.exists_one(m, m == n))
    + variables.groupNames.filter(n, !variables.groupNames.exists_one(m, m == n))
    + variables.options.map(all, all.map(o, o.split("=")[0])).map(names, names.filter(n, !names.exists_one(m, m == n))).flatten()
    + variables.options.flatten().filter(o, o.startsWith("groups=")).map(o, o.substring(7).split(",").map(g, g.trim()))
      .map(names, names.filter(n, !names.exists_one(m, m == n))).flatten()
- name: badDurations
  expression: >-
    variables.options.flatten().filter(o, o.matches("^(ack-timeout|session-timeout|max-lease|expires)=")
    && (duration(o.split("=")[1]) < duration("1ms") && !(o.startsWith("expires=") && duration(o.split("=")[1]) == duration("0s"))
      || duration(o.split("=")[1]) > duration("168h")))
- name: partitions # in all
  expression: >-
    variables.badTopics.size() > 0 ? 0 : variables.topics.map(t, t.contains("partitions=") ? int(t.split("partitions=")[1].split("&")[0]) : {{ .Values.sidecar.settings.partitions | default 1 | int }}).sum()
- name: reserved # bytes; no topic may count for more than 1P, so that the sum fits
  expression: >-
    variables.options.flatten().filter(o, o.startsWith("max-bytes=")).map(o, quantity(o.substring(10).replace("B", "")))
    .map(q, q.isLessThan(quantity("1P")) ? q.asInteger() : 1000000000000000).sum()
- name: lost
  expression: variables.groupNames.filter(g, !(g.split("/")[0] in variables.topicNames))
{{ include "podmq.quantityVariables" . }}
- name: budget # bytes that messages may take: what the chart says, else half of the limit
  expression: >-
    {{ with .Values.sidecar.settings.maxBytes }}quantity({{ . | replace "B" "" | toJson }}).asApproximateFloat(){{ else }}quantity(variables.memoryLimit).asApproximateFloat() / 2.0{{ end }}
{{- end -}}

{{/*
podmq.annotationValidations is a sentence for each annotation that is wrong.

unless   an expression; where it is true, nothing is checked
*/}}
{{- define "podmq.annotationValidations" -}}
{{- $unless := .unless -}}
- expression: {{ $unless }} || variables.unknown.size() == 0
  messageExpression: '"podmq: there is no annotation " + variables.unknown[0] + "; there are {{ include "podmq.annotationNames" .root }}"'
- expression: {{ $unless }} || variables.badTopics.size() == 0
  messageExpression: >-
    "podmq: annotation podmq.io/topics cannot be read at " + strings.quote({{ include "podmq.cut" "variables.badTopics[0]" }})
    + ": a topic is written like orders?partitions=8&capacity=10000&ack-timeout=30s&max-bytes=16MiB&groups=billing,email (1 to 1024 partitions, 1 to 10000000 messages each), and topics are separated by ; or new lines"
- expression: {{ $unless }} || variables.badGroups.size() == 0
  messageExpression: >-
    "podmq: annotation podmq.io/groups cannot be read at " + strings.quote({{ include "podmq.cut" "variables.badGroups[0]" }})
    + ": a group is written like orders/billing?type=queue&start=earliest&strategy=round-robin&session-timeout=2m&max-lease=1h&expires=60s, and groups are separated by ; or new lines"
- expression: {{ $unless }} || variables.badDurations.size() == 0
  messageExpression: '"podmq: a duration in the annotations must be 1ms to 168h, and this is not: " + variables.badDurations[0]'
- expression: {{ $unless }} || variables.topics.size() <= 1000 && variables.partitions <= 10000
  messageExpression: '"podmq: annotation podmq.io/topics asks for " + string(variables.topics.size()) + " topics with " + string(variables.partitions) + " partitions, and a broker has at most 1000 with 10000"'
- expression: {{ $unless }} || double(variables.reserved) <= variables.budget
  messageExpression: '"podmq: annotation podmq.io/topics reserves " + string(variables.reserved) + " bytes by max-bytes, and all messages together may take " + string(int(variables.budget)) + "; raise podmq.io/memory-limit or reserve less"'
- expression: {{ $unless }} || variables.badTopics.size() + variables.badGroups.size() > 0 || variables.twice.size() == 0
  messageExpression: '"podmq: annotations podmq.io/topics and podmq.io/groups may say a thing once only, and this is there twice: " + strings.quote({{ include "podmq.cut" "variables.twice[0]" }})'
- expression: {{ $unless }} || variables.badTopics.size() + variables.badGroups.size() > 0 || variables.lost.size() == 0
  messageExpression: '"podmq: annotation podmq.io/groups names " + strings.quote({{ include "podmq.cut" "variables.lost[0]" }}) + ", whose topic is not declared; the topics are " + strings.quote({{ include "podmq.cut" "variables.topicNames.join(\", \")" }})'
- expression: {{ $unless }} || !("podmq.io/memory-limit" in variables.annotations) || variables.memoryLimitGood
  messageExpression: '"podmq: annotation podmq.io/memory-limit must be a quantity of at least 32Mi, not " + strings.quote({{ include "podmq.cut" "variables.annotations[\"podmq.io/memory-limit\"]" }})'
- expression: {{ $unless }} || !("podmq.io/memory-request" in variables.annotations) || variables.memoryRequestGood
  messageExpression: '"podmq: annotation podmq.io/memory-request must be a quantity above 0 and at most the limit of " + variables.memoryLimit + ", not " + strings.quote({{ include "podmq.cut" "variables.annotations[\"podmq.io/memory-request\"]" }})'
- expression: {{ $unless }} || !("podmq.io/cpu-request" in variables.annotations) || variables.cpuRequestGood
  messageExpression: '"podmq: annotation podmq.io/cpu-request must be a quantity above 0{{ with .root.Values.sidecar.resources.limits.cpu }} and at most the limit of {{ . }}{{ end }}, such as 100m, not " + strings.quote({{ include "podmq.cut" "variables.annotations[\"podmq.io/cpu-request\"]" }})'
{{- end -}}

{{/* podmq.cut is a CEL expression for the beginning of a text, short enough for a sentence. */}}
{{- define "podmq.cut" -}}
({{ . }}.size() > 100 ? {{ . }}.substring(0, 100) + "…" : {{ . }})
{{- end -}}
