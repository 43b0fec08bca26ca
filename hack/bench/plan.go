package main

import (
	"fmt"
	"slices"
	"time"
)

// The systems, and the ways to use PodMQ, as they stand in the table.
const (
	podmqFrames = "PodMQ"
	podmqJSON   = "PodMQ, JSON"
	podmqTCP    = "PodMQ, TCP"
	podmqQueue  = "PodMQ, queue group"
	redisName   = "Redis Streams"
	beanName    = "beanstalkd"
	natsName    = "NATS JetStream"
	ceiling     = "bare exchange"
)

// An experiment is one work for several systems, or for one under several
// conditions.
type experiment struct {
	name  string // for -only
	title string
	who   []contender
	turn  time.Duration // 0: as the command line says
}

// A contender is a system and what it is to do.
type contender struct {
	system string
	label  string // in the table, "": the system's name
	work   work
}

func (c *contender) name() string {
	if c.label != "" {
		return c.label
	}
	return c.system
}

// base is the work that most others are a variation of: one message in a
// request, 256 bytes, 8 producers, 4 consumers of one group. PodMQ has as many
// partitions as consumers.
var base = work{producers: 8, consumers: 4, groups: 1, batch: 1, size: 256, parts: 4}

func the(change func(w *work)) work {
	w := base
	change(&w)
	return w
}

func all(w work, systems ...string) (who []contender) {
	for _, s := range systems {
		who = append(who, contender{system: s, work: w})
	}
	return who
}

// plan is all that is measured in turns.
func plan() []experiment {
	return slices.Concat(headline(), sizesPlan(), groupsPlan(), publishPlan(), latencyPlan(), growthPlan())
}

func headline() []experiment {
	es := []experiment{{
		name: "one", title: "one message a request",
		who: all(base, podmqFrames, podmqQueue, podmqTCP, redisName, beanName, natsName, ceiling),
	}}
	for _, n := range []int{10, 100, 1000} {
		who := []string{podmqFrames, podmqJSON, redisName, beanName, natsName}
		if n == 100 {
			who = append(who, podmqTCP, podmqQueue, ceiling)
		}
		es = append(es, experiment{
			name: fmt.Sprintf("batch-%d", n), title: fmt.Sprintf("batches of %d", n),
			who: all(the(func(w *work) { w.batch = n }), who...),
		})
	}
	return es
}

func sizesPlan() (es []experiment) {
	for _, size := range []int{64, 4 << 10, 64 << 10} {
		for _, batch := range []int{1, 100} {
			who := []string{podmqFrames, redisName, beanName, natsName}
			if batch*size > 1<<20 {
				who = []string{podmqFrames, redisName, natsName}
			}
			es = append(es, experiment{
				name: fmt.Sprintf("size-%d-batch-%d", size, batch), title: fmt.Sprintf("%d B, %s", size, inBatches(batch)),
				who: all(the(func(w *work) { w.batch, w.size = batch, size }), who...),
			})
		}
	}
	return es
}

func inBatches(n int) string {
	if n == 1 {
		return "one message a request"
	}
	return fmt.Sprintf("batches of %d", n)
}

func groupsPlan() (es []experiment) {
	for _, groups := range []int{2, 10} {
		for _, batch := range []int{1, 100} {
			w := the(func(w *work) { w.groups, w.batch, w.consumers = groups, batch, max(4, groups) })
			es = append(es, experiment{
				name: fmt.Sprintf("groups-%d-batch-%d", groups, batch), title: fmt.Sprintf("%d groups, %s", groups, inBatches(batch)),
				who: all(w, podmqFrames, redisName, natsName),
			})
		}
	}
	fan := the(func(w *work) { w.producers, w.consumers, w.groups, w.batch, w.parts = 2, 50, 50, 10, 1 })
	return append(es, experiment{
		name: "fan-out", title: "fan-out to 50 groups, batches of 10",
		who: all(fan, podmqFrames, redisName, natsName),
	})
}

func publishPlan() (es []experiment) {
	for _, n := range []int{8, 64} {
		w := the(func(w *work) { w.producers, w.consumers = n, 0 })
		es = append(es, experiment{
			name: fmt.Sprintf("publish-%d", n), title: fmt.Sprintf("publish alone, %d connections", n),
			who: all(w, podmqFrames, redisName, beanName, natsName, ceiling),
		})
	}
	idle := experiment{name: "idle-groups", title: "publish alone, beside idle groups"}
	for _, n := range []int{1, 0, 10} {
		idle.who = append(idle.who, contender{podmqFrames, fmt.Sprintf("PodMQ, %d groups", n), the(func(w *work) { w.consumers, w.groups = 0, n })})
	}
	return append(es, idle)
}

// latencyPlan is for publish to parked poll, one producer and one consumer.
func latencyPlan() []experiment {
	w := the(func(w *work) { w.producers, w.consumers, w.parts, w.rate = 1, 1, 1, 1000 })
	return []experiment{{
		name: "latency", title: "1,000 messages a second to a parked poll", turn: 2 * time.Second,
		who: all(w, podmqFrames, podmqTCP, redisName, beanName, natsName),
	}}
}

func growthPlan() []experiment {
	parts := experiment{name: "partitions", title: "one message a request, by partitions"}
	for _, n := range []int{1, 4, 16, 64} {
		parts.who = append(parts.who, contender{podmqFrames, fmt.Sprintf("PodMQ, %d partitions", n), the(func(w *work) { w.parts = n })})
	}
	conns := experiment{name: "connections", title: "one message a request, by producers"}
	for _, s := range []string{podmqFrames, redisName} {
		for _, n := range []int{1, 8, 64, 252} {
			conns.who = append(conns.who, contender{s, fmt.Sprintf("%s, %d producers", s, n), the(func(w *work) { w.producers = n })})
		}
	}
	return []experiment{parts, conns}
}

// A target is what the project asks of a ratio in an experiment: PodMQ's rate to that of
// another.
type target struct {
	text       string
	setting    setting
	experiment string
	of, to     string
	least      float64
	value      func(*sample) float64 // what is compared; nil: the rate
	atMost     bool                  // least is the most
}

func targets() []target {
	cpu := func(s *sample) float64 { return s.ServerCPU }
	publish := func(s *sample) float64 { return s.PublishP99 }
	delivery := func(s *sample) float64 { return s.DeliveryP99 }
	return []target{
		{"one by one, pinned, to Redis Streams", pinned, "one", podmqFrames, redisName, 1.5, nil, false},
		{"one by one, pinned, CPU a message, to Redis Streams", pinned, "one", podmqFrames, redisName, 1, cpu, true},
		{"one by one, all cores, to Redis Streams", allCores, "one", podmqFrames, redisName, 2, nil, false},
		{"batches of 100 frames, pinned, to Redis Streams", pinned, "batch-100", podmqFrames, redisName, 10, nil, false},
		{"batches of 100 frames, all cores, to Redis Streams", allCores, "batch-100", podmqFrames, redisName, 10, nil, false},
		{"batches of 100 in JSON, pinned, to Redis Streams", pinned, "batch-100", podmqJSON, redisName, 5, nil, false},
		{"batches of 100 in JSON, all cores, to Redis Streams", allCores, "batch-100", podmqJSON, redisName, 5, nil, false},
		{"batches of 100 frames, pinned, to NATS JetStream", pinned, "batch-100", podmqFrames, natsName, 5, nil, false},
		{"batches of 100 frames over TCP, pinned, to NATS JetStream", pinned, "batch-100", podmqTCP, natsName, 5, nil, false},
		{"batches of 100 frames, all cores, to NATS JetStream", allCores, "batch-100", podmqFrames, natsName, 5, nil, false},
		{"batches of 100 frames over TCP, all cores, to NATS JetStream", allCores, "batch-100", podmqTCP, natsName, 5, nil, false},
		{"batches of 100 frames, pinned, to the bare exchange", pinned, "batch-100", podmqFrames, ceiling, 0.25, nil, false},
		{"batches of 100 frames, all cores, to the bare exchange", allCores, "batch-100", podmqFrames, ceiling, 0.25, nil, false},
		{"publish alone, 8 connections, pinned, to the bare exchange", pinned, "publish-8", podmqFrames, ceiling, 0.65, nil, false},
		{"publish alone, 8 connections, all cores, to the bare exchange", allCores, "publish-8", podmqFrames, ceiling, 0.65, nil, false},
		{"publish alone, 64 connections, pinned, to the bare exchange", pinned, "publish-64", podmqFrames, ceiling, 0.75, nil, false},
		{"publish alone, 64 connections, all cores, to the bare exchange", allCores, "publish-64", podmqFrames, ceiling, 0.75, nil, false},
		{"ten idle groups to one, pinned, rate", pinned, "idle-groups", "PodMQ, 10 groups", "PodMQ, 1 groups", 0.85, nil, false},
		{"ten idle groups to one, all cores, rate", allCores, "idle-groups", "PodMQ, 10 groups", "PodMQ, 1 groups", 0.85, nil, false},
		{"p99 of a publish under full load, pinned, to Redis Streams", pinned, "one", podmqFrames, redisName, 1, publish, true},
		{"p99 of a publish under full load, all cores, to Redis Streams", allCores, "one", podmqFrames, redisName, 1, publish, true},
		{"p99 of publish to parked poll, pinned, to Redis Streams", pinned, "latency", podmqFrames, redisName, 1, delivery, true},
		{"p99 of publish to parked poll, all cores, to Redis Streams", allCores, "latency", podmqFrames, redisName, 1, delivery, true},
	}
}
