{{/* podmq.requirePolicies refuses a cluster without MutatingAdmissionPolicy. */}}
{{- define "podmq.requirePolicies" -}}
{{- if semverCompare "<1.36.0-0" .Capabilities.KubeVersion.Version -}}
  {{- fail (printf "podmq: injection by label needs Kubernetes 1.36 or later, and this cluster is %s. Either include the library chart podmq-sidecar in your own chart, which works from 1.29 on, and install this chart with --set injection.enabled=false for its monitoring alone; or upgrade the cluster." .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- end -}}

{{/*
podmq.askedConditions leaves the pods that said no, and the mirrors of static
pods, which admission may not change.
*/}}
{{- define "podmq.askedConditions" -}}
- name: not-opted-out
  expression: object.metadata.?labels[?"podmq.io/inject"].orValue("") != "false"
- name: no-mirror-pod
  expression: '!("kubernetes.io/config.mirror" in object.metadata.?annotations.orValue({}))'
{{- end -}}

{{/*
podmq.os is a CEL expression for the system of a pod spec: many Windows pods say it
by their nodeSelector alone.
*/}}
{{- define "podmq.os" -}}
{{ . }}.?os.?name.orValue({{ . }}.?nodeSelector[?"kubernetes.io/os"].orValue("linux"))
{{- end -}}

{{/*
podmq.quantityVariables gives what the broker requests and its limit: what the
pod's annotations say where it is good, else the chart's. A bad annotation never
fails the mutation, which would be answered with an error that names nobody;
podmq-annotations refuses it with a sentence.
*/}}
{{- define "podmq.quantityVariables" -}}
{{- $resources := (include "podmq.brokerOf" . | fromYaml).resources -}}
- name: memoryLimitGood
  expression: >-
    "podmq.io/memory-limit" in variables.annotations
    && isQuantity(variables.annotations["podmq.io/memory-limit"])
    && quantity(variables.annotations["podmq.io/memory-limit"]).compareTo(quantity("32Mi")) >= 0
- name: memoryLimit
  expression: >-
    variables.memoryLimitGood ? variables.annotations["podmq.io/memory-limit"] : {{ toJson $resources.limits.memory }}
- name: memoryRequestGood
  expression: >-
    "podmq.io/memory-request" in variables.annotations
    && isQuantity(variables.annotations["podmq.io/memory-request"])
    && quantity(variables.annotations["podmq.io/memory-request"]).isGreaterThan(quantity("0"))
    && !quantity(variables.annotations["podmq.io/memory-request"]).isGreaterThan(quantity(variables.memoryLimit))
- name: memoryRequest # a lower limit takes the chart's request down with it
  expression: >-
    variables.memoryRequestGood ? variables.annotations["podmq.io/memory-request"]
    : quantity({{ toJson $resources.requests.memory }}).isGreaterThan(quantity(variables.memoryLimit)) ? variables.memoryLimit
    : {{ toJson $resources.requests.memory }}
- name: cpuRequestGood
  expression: >-
    "podmq.io/cpu-request" in variables.annotations
    && isQuantity(variables.annotations["podmq.io/cpu-request"])
    && quantity(variables.annotations["podmq.io/cpu-request"]).isGreaterThan(quantity("0"))
    {{- with $resources.limits.cpu }}
    && !quantity(variables.annotations["podmq.io/cpu-request"]).isGreaterThan(quantity({{ toJson . }}))
    {{- end }}
- name: cpuRequest
  expression: >-
    variables.cpuRequestGood ? variables.annotations["podmq.io/cpu-request"] : {{ toJson $resources.requests.cpu }}
{{- end -}}

{{/*
podmq.topicPatches puts the pod's own topics and groups into the broker's env.
Groups name topics, so a pod with topics of its own gets none of the chart's
groups.
*/}}
{{- define "podmq.topicPatches" -}}
{{- $index := dict -}}
{{- range $i, $e := .env }}{{ $_ := set $index $e.name $i }}{{ end -}}
{{- $at := .at -}}
{{- range $annotation, $variable := dict "podmq.io/topics" "PODMQ_TOPICS" "podmq.io/groups" "PODMQ_GROUPS" }}
+ (!({{ toJson $annotation }} in variables.annotations) ?
{{- if and (eq $variable "PODMQ_GROUPS") (hasKey $index $variable) }}
    ("podmq.io/topics" in variables.annotations
      ? [JSONPatch{op: "replace", path: "{{ $at }}/env/{{ get $index $variable }}/value", value: ""}] : []) :
{{- else }} [] :
{{- end }}
  {{- if hasKey $index $variable }}
    [JSONPatch{op: "replace", path: "{{ $at }}/env/{{ get $index $variable }}/value", value: variables.annotations[{{ toJson $annotation }}]}])
  {{- else }}
    [JSONPatch{op: "add", path: "{{ $at }}/env/-", value: dyn({"name": dyn({{ toJson $variable }}), "value": dyn(variables.annotations[{{ toJson $annotation }}])})}])
  {{- end }}
{{- end }}
{{- end -}}
