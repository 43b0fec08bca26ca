{{/*
podmq.alerts is what is worth waking somebody for, as a list; each has a test in
test/e2e/chart/testdata/rules_test.yaml. A native sidecar is an init container to
kube-state-metrics, so the usual alerts on restarts never see it.
*/}}
{{- define "podmq.alerts" -}}
- alert: PodmqLagNotShrinking
  severity: warning
  for: 5m
  expr: podmq_group_lag >= podmq_group_lag offset 15m and min_over_time(podmq_group_lag[15m]) > 0
  summary: Group {{ "{{ $labels.group }}" }} falls behind on topic {{ "{{ $labels.topic }}" }}
  description: >-
    In pod {{ "{{ $labels.namespace }}/{{ $labels.pod }}" }} the group has had messages to do for 15 minutes and has not caught up:
    {{ "{{ $value }}" }} now. Its consumers are too slow or stuck; publishers wait once the topic is full.
- alert: PodmqNoConsumer
  severity: warning
  for: 5m
  expr: podmq_group_lag > 0 and podmq_group_members == 0
  summary: Nobody consumes topic {{ "{{ $labels.topic }}" }} for group {{ "{{ $labels.group }}" }}
  description: >-
    In pod {{ "{{ $labels.namespace }}/{{ $labels.pod }}" }} {{ "{{ $value }}" }} messages wait for a group without members. Start its
    consumer, or delete the group if nobody needs it; it holds back publishers.
- alert: PodmqOldMessage
  severity: warning
  for: 1m
  expr: podmq_group_oldest_unacked_seconds > {{ int .oldestMessageSeconds }}
  summary: The oldest message of group {{ "{{ $labels.group }}" }} on topic {{ "{{ $labels.topic }}" }} is old
  description: >-
    In pod {{ "{{ $labels.namespace }}/{{ $labels.pod }}" }} a message has not been acknowledged for {{ "{{ $value | humanizeDuration }}" }}.
    A message that always fails blocks its partition: look at the consumer's log.
- alert: PodmqBufferNearlyFull
  severity: warning
  for: 5m
  expr: podmq_topic_fullness_ratio > {{ .fullnessRatio }}
  summary: Topic {{ "{{ $labels.topic }}" }} is nearly full
  description: >-
    In pod {{ "{{ $labels.namespace }}/{{ $labels.pod }}" }} the fullest partition is at {{ "{{ $value | humanizePercentage }}" }} of its
    capacity. When it is full, publishers wait or are refused.
- alert: PodmqMemoryNearlyFull
  severity: warning
  for: 5m
  expr: podmq_memory_bytes / podmq_memory_limit_bytes > {{ .fullnessRatio }}
  summary: The broker's memory budget is nearly used up
  description: >-
    In pod {{ "{{ $labels.namespace }}/{{ $labels.pod }}" }} messages take {{ "{{ $value | humanizePercentage }}" }} of the budget.
    When it is full, publishes are refused with memory_full. A higher memory limit (annotation podmq.io/memory-limit) raises it.
- alert: PodmqPublishRejected
  severity: warning
  for: 5m
  expr: sum by (namespace, pod, topic, reason) (rate(podmq_publish_rejected_total[5m])) > 0
  summary: Publishes to topic {{ "{{ $labels.topic }}" }} are refused
  description: >-
    In pod {{ "{{ $labels.namespace }}/{{ $labels.pod }}" }} {{ "{{ $value | humanize }}" }} publishes a second are refused with
    {{ "{{ $labels.reason }}" }}. Those messages are stored nowhere but with their publisher.
- alert: PodmqMessagesForNobody
  severity: info
  for: 5m
  expr: rate(podmq_messages_without_group_total[5m]) > 0
  summary: Topic {{ "{{ $labels.topic }}" }} has no group
  description: >-
    In pod {{ "{{ $labels.namespace }}/{{ $labels.pod }}" }} messages are published that nobody will ever get. Declare the group, so
    that it is there before the first publisher.
- alert: PodmqRestarted
  severity: warning
  for: 0m
  expr: increase(kube_pod_init_container_status_restarts_total{container="podmq"}[15m]) > 0
  summary: A broker restarted and lost what it held
  description: >-
    The broker of pod {{ "{{ $labels.namespace }}/{{ $labels.pod }}" }} restarted in the last 15 minutes. Messages that were not
    acknowledged are gone; see `kubectl describe pod` for the reason.
- alert: PodmqOutOfMemory
  severity: critical
  for: 0m
  expr: >-
    kube_pod_init_container_status_last_terminated_reason{container="podmq", reason="OOMKilled"} == 1
    and on (namespace, pod) increase(kube_pod_init_container_status_restarts_total{container="podmq"}[15m]) > 0
  summary: A broker was killed for its memory
  description: >-
    The broker of pod {{ "{{ $labels.namespace }}/{{ $labels.pod }}" }} used more than its memory limit and was killed. It bounds what
    messages take, so this is a limit that is too low beside many connections or large requests; raise podmq.io/memory-limit.
- alert: PodmqCrashLooping
  severity: critical
  for: 1m
  expr: kube_pod_init_container_status_waiting_reason{container="podmq", reason="CrashLoopBackOff"} == 1
  summary: A broker does not start
  description: >-
    The broker of pod {{ "{{ $labels.namespace }}/{{ $labels.pod }}" }} waits in back-off, and its pod is not ready meanwhile. Its
    termination message says why: `kubectl describe pod`.
- alert: PodmqNotScraped
  severity: warning
  for: 15m
  expr: >-
    kube_pod_init_container_status_running{container="podmq"} == 1
    unless on (namespace, pod) podmq_build_info
  summary: A broker's metrics are missing
  description: >-
    Pod {{ "{{ $labels.namespace }}/{{ $labels.pod }}" }} has a running broker whose metrics nobody reads, so no other alert would tell of
    it. Is there a PodMonitor, and does a NetworkPolicy let Prometheus to port podmq-metrics?
{{- end -}}
