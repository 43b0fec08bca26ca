package ops

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/podmq/podmq/pkg/core"
)

// collector turns one snapshot into series at each scrape, and keeps none of
// it: the series of a deleted topic are gone with the topic.
type collector struct {
	c Config
	s series
}

func newCollector(c Config) *collector { return &collector{c, newSeries()} }

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.s.all() {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	e := emitter{out}
	c.process(e)
	stats := c.c.Engine()
	e.gauge(c.s.memory, float64(stats.MemoryBytes))
	e.gauge(c.s.memoryLimit, float64(stats.MemoryLimit))
	for i := range stats.Topics {
		t := &stats.Topics[i]
		c.topic(e, t)
		if c.c.Partitions {
			c.partitions(e, t)
		}
		for j := range t.Groups {
			c.group(e, t.Name, &t.Groups[j])
		}
	}
}

func (c *collector) process(e emitter) {
	b := c.c.Build
	e.gauge(c.s.build, 1, b.Version, b.Revision, b.GoVersion)
	e.gauge(c.s.start, float64(c.c.Start.UnixNano())/float64(time.Second))
	server := c.c.Server()
	e.gauge(c.s.connections, float64(server.Connections))
	for _, r := range server.Requests {
		code := strconv.Itoa(r.Code)
		e.counter(c.s.requests, r.Count, r.Route, code)
		e.histogram(c.s.requestSeconds, &r.Seconds, r.Route, code)
	}
}

func (c *collector) topic(e emitter, t *core.TopicStats) {
	e.counter(c.s.published, t.Published, t.Name)
	e.counter(c.s.publishedBytes, t.PublishedBytes, t.Name)
	e.counter(c.s.withoutGroup, t.WithoutGroup, t.Name)
	for _, r := range t.Rejected {
		e.counter(c.s.rejected, r.Count, t.Name, string(r.Reason))
	}
	e.gauge(c.s.publishWaiting, float64(t.Publishing), t.Name)
	e.histogram(c.s.publishWait, &t.PublishWait, t.Name)
	var most int64
	for _, p := range t.Partitions {
		most = max(most, p.Backlog)
	}
	e.gauge(c.s.fullness, float64(most)/float64(t.Settings.Capacity), t.Name)
}

func (c *collector) partitions(e emitter, t *core.TopicStats) {
	for i, p := range t.Partitions {
		partition := strconv.Itoa(i)
		e.gauge(c.s.backlog, float64(p.Backlog), t.Name, partition)
		e.gauge(c.s.capacity, float64(t.Settings.Capacity), t.Name, partition)
		e.gauge(c.s.endOffset, float64(p.End), t.Name, partition)
	}
}

func (c *collector) group(e emitter, topic string, g *core.GroupStats) {
	e.counter(c.s.delivered, g.Delivered, topic, g.Name)
	e.counter(c.s.acked, g.Acked, topic, g.Name)
	e.counter(c.s.redelivered, g.Redelivered.Nack, topic, g.Name, "nack")
	e.counter(c.s.redelivered, g.Redelivered.Lease, topic, g.Name, "lease")
	e.counter(c.s.redelivered, g.Redelivered.Leave, topic, g.Name, "leave")
	e.histogram(c.s.latency, &g.DeliveryLatency, topic, g.Name)
	var lag int64
	for i := range g.Cursors {
		lag += g.Cursors[i].Lag
	}
	e.gauge(c.s.lag, float64(lag), topic, g.Name)
	e.gauge(c.s.inFlight, float64(g.InFlight), topic, g.Name)
	e.gauge(c.s.members, float64(len(g.Members)), topic, g.Name)
	e.gauge(c.s.oldest, g.OldestUnacked.Seconds(), topic, g.Name)
	e.gauge(c.s.polls, float64(g.PollsWaiting), topic, g.Name)
}

// emitter sends series out.
type emitter struct{ out chan<- prometheus.Metric }

func (e emitter) gauge(d *prometheus.Desc, v float64, labels ...string) {
	e.out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (e emitter) counter(d *prometheus.Desc, v uint64, labels ...string) {
	e.out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}

func (e emitter) histogram(d *prometheus.Desc, h *core.Histogram, labels ...string) {
	buckets := make(map[float64]uint64, len(core.LatencyBounds))
	var count uint64
	for i, bound := range core.LatencyBounds {
		count += h.Counts[i]
		buckets[bound.Seconds()] = count
	}
	e.out <- prometheus.MustNewConstHistogram(d, h.Count(), h.Sum.Seconds(), buckets, labels...)
}
