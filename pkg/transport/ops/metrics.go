package ops

import "github.com/prometheus/client_golang/prometheus"

// series are the descriptions of all that is shown. No message key is ever a
// label: topics and groups are bounded, keys are not.
type series struct {
	published, publishedBytes, withoutGroup, rejected, publishWaiting, publishWait *prometheus.Desc
	fullness, backlog, capacity, endOffset                                         *prometheus.Desc
	delivered, acked, redelivered, latency                                         *prometheus.Desc
	lag, inFlight, members, oldest, polls                                          *prometheus.Desc
	memory, memoryLimit, connections, build, start                                 *prometheus.Desc
	requests, requestSeconds                                                       *prometheus.Desc
}

func newSeries() series {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("podmq_"+name, help, labels, nil)
	}
	return series{
		published:      desc("messages_published_total", "Messages stored.", "topic"),
		publishedBytes: desc("published_bytes_total", "Payload, key and headers of the messages stored, in bytes.", "topic"),
		withoutGroup:   desc("messages_without_group_total", "Messages that nobody will get, because the topic had no group.", "topic"),
		rejected:       desc("publish_rejected_total", "Publishes refused, by the code of the refusal.", "topic", "reason"),
		publishWaiting: desc("publish_waiting", "Publishers that wait for room.", "topic"),
		publishWait:    desc("publish_wait_seconds", "How long publishers waited for room that had to wait.", "topic"),
		fullness:       desc("topic_fullness_ratio", "Backlog of the fullest partition as a part of its capacity.", "topic"),

		backlog:   desc("partition_backlog", "Messages that the slowest group has not acknowledged.", "topic", "partition"),
		capacity:  desc("partition_capacity", "Messages that the partition can hold.", "topic", "partition"),
		endOffset: desc("partition_end_offset", "Offset that the next message gets.", "topic", "partition"),

		delivered:   desc("messages_delivered_total", "Messages handed out, repeated ones included.", "topic", "group"),
		acked:       desc("messages_acked_total", "Messages acknowledged.", "topic", "group"),
		redelivered: desc("messages_redelivered_total", "Messages handed out again, by how the delivery before had ended.", "topic", "group", "reason"),
		latency:     desc("delivery_latency_seconds", "Time from publish to the first hand-out.", "topic", "group"),
		lag:         desc("group_lag", "Messages that exist and that the group has not acknowledged.", "topic", "group"),
		inFlight:    desc("group_in_flight", "Messages handed out and not settled.", "topic", "group"),
		members:     desc("group_members", "Members of the group.", "topic", "group"),
		oldest:      desc("group_oldest_unacked_seconds", "Age of the oldest message that the group has not acknowledged.", "topic", "group"),
		polls:       desc("polls_waiting", "Polls that wait for a message.", "topic", "group"),

		memory:         desc("memory_bytes", "What the messages held cost of the memory budget."),
		memoryLimit:    desc("memory_limit_bytes", "The memory budget of all topics together."),
		connections:    desc("connections", "Connections that are open."),
		build:          desc("build_info", "1, and which program this is.", "version", "revision", "goversion"),
		start:          desc("start_time_seconds", "When the broker started, in seconds since the Unix epoch."),
		requests:       desc("http_requests_total", "Requests answered.", "route", "code"),
		requestSeconds: desc("http_request_seconds", "Time from a request's arrival to its answer, waiting included.", "route", "code"),
	}
}

func (s *series) all() []*prometheus.Desc {
	return []*prometheus.Desc{
		s.published, s.publishedBytes, s.withoutGroup, s.rejected, s.publishWaiting, s.publishWait, s.fullness,
		s.backlog, s.capacity, s.endOffset,
		s.delivered, s.acked, s.redelivered, s.latency, s.lag, s.inFlight, s.members, s.oldest, s.polls,
		s.memory, s.memoryLimit, s.connections, s.build, s.start, s.requests, s.requestSeconds,
	}
}
