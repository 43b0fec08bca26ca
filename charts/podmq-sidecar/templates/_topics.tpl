{{/*
podmq.topics is PODMQ_TOPICS for the list of topics. Groups without settings of
their own stand with their topic; the others are in podmq.groups.
*/}}
{{- define "podmq.topics" -}}
{{- $entries := list -}}
{{- $seen := list -}}
{{- range .topics -}}
  {{- if has .name $seen -}}
    {{- fail (printf "podmq: topics: %s is there twice" .name) -}}
  {{- end -}}
  {{- $seen = append $seen .name -}}
  {{- $plain := list -}}
  {{- range include "podmq.groupsOf" . | fromJsonArray -}}
    {{- if eq (len .) 1 }}{{ $plain = append $plain .name }}{{ end -}}
  {{- end -}}
  {{- $options := include "podmq.options" (list
    "partitions" (include "podmq.number" .partitions)
    "capacity" (include "podmq.number" .capacity)
    "max-bytes" .maxBytes
    "ack-timeout" .ackTimeout
    "groups" (join "," $plain)) -}}
  {{- $entries = append $entries (printf "%s%s" .name $options) -}}
{{- end -}}
{{- join "; " $entries -}}
{{- end -}}

{{/* podmq.groups is PODMQ_GROUPS for the list of topics. */}}
{{- define "podmq.groups" -}}
{{- $entries := list -}}
{{- range $topic := .topics -}}
  {{- range include "podmq.groupsOf" $topic | fromJsonArray -}}
    {{- if gt (len .) 1 -}}
      {{- $options := include "podmq.options" (list
        "type" .type
        "start" .start
        "strategy" .strategy
        "session-timeout" .sessionTimeout
        "max-lease" .maxLease
        "expires" .expires) -}}
      {{- $entries = append $entries (printf "%s/%s%s" $topic.name .name $options) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- join "; " $entries -}}
{{- end -}}

{{/* podmq.groupsOf is the groups of a topic, each as a map, as JSON: a name alone is a group without settings. */}}
{{- define "podmq.groupsOf" -}}
{{- $topic := .name -}}
{{- $groups := list -}}
{{- $seen := list -}}
{{- range .groups -}}
  {{- $group := . -}}
  {{- if kindIs "string" $group }}{{ $group = dict "name" $group }}{{ end -}}
  {{- if has $group.name $seen -}}
    {{- fail (printf "podmq: topics: group %s of topic %s is there twice" $group.name $topic) -}}
  {{- end -}}
  {{- $seen = append $seen $group.name -}}
  {{- $groups = append $groups $group -}}
{{- end -}}
{{- toJson $groups -}}
{{- end -}}

{{/* podmq.options writes name and value by turns as ?name=value&name=value, without those that are empty. */}}
{{- define "podmq.options" -}}
{{- $options := list -}}
{{- range $i, $name := . -}}
  {{- if mod $i 2 | eq 0 -}}
    {{- with index $ (add1 $i) -}}
      {{- $options = append $options (printf "%s=%v" $name .) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- if $options }}?{{ join "&" $options }}{{ end -}}
{{- end -}}
