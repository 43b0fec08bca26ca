package memory

import (
	"fmt"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// retryAfter is what a refused publisher is told to wait: long enough not to be
// a spin, short enough to find the room that an ack has made.
const retryAfter = 100 * time.Millisecond

func unknownTopic(name string) *core.Error {
	return core.Errorf(core.CodeUnknownTopic, "cannot find topic %.220q: create it with PUT /v1/topics/{topic} or declare it in PODMQ_TOPICS", name).With("topic", fmt.Sprintf("%.220s", name))
}

func unknownGroup(topic, name string) *core.Error {
	return core.Errorf(core.CodeUnknownGroup, "cannot find group %.220q of topic %s: create it with PUT /v1/topics/%s/groups/{group} or declare it in PODMQ_GROUPS", name, topic, topic).
		With("topic", topic).With("group", fmt.Sprintf("%.220s", name))
}

func unknownPartition(topic string, partition, partitions int) *core.Error {
	return core.Errorf(core.CodeUnknownPartition, "cannot find partition %d of topic %s: it has partitions 0 to %d", partition, topic, partitions-1).
		With("topic", topic).With("partition", partition)
}

func draining() *core.Error {
	e := core.Errorf(core.CodeDraining, "cannot wait: the broker is shutting down; try again after its restart")
	e.RetryAfter = time.Second
	return e
}
