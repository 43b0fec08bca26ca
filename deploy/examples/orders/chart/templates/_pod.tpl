{{/* The pod spec as it would be without a broker. */}}
{{- define "orders.pod" -}}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  seccompProfile: {type: RuntimeDefault}
containers:
{{- range $name := list "web" "worker" "audit" }}
- name: {{ $name }}
  image: orders-{{ $name }}:1
  {{- if eq $name "web" }}
  ports:
  - {name: http, containerPort: 8080}
  readinessProbe:
    httpGet: {path: /, port: http}
    periodSeconds: 2
  {{- end }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities: {drop: [ALL]}
  resources:
    requests: {cpu: 10m, memory: 32Mi}
    limits: {memory: 128Mi}
{{- end }}
{{- end -}}
