package transport

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/transport/options"
)

type topicJSON struct {
	Name       string          `json:"name"`
	Settings   settingsJSON    `json:"settings"`
	Partitions []partitionJSON `json:"partitions"`
}

type settingsJSON struct {
	Partitions int    `json:"partitions"`
	Capacity   int    `json:"capacity"`
	MaxBytes   int64  `json:"max_bytes"`
	AckTimeout string `json:"ack_timeout"`
}

type partitionJSON struct {
	Partition int                  `json:"partition"`
	Start     int64                `json:"start"`
	End       int64                `json:"end"`
	Backlog   int64                `json:"backlog"`
	Bytes     int64                `json:"bytes"`
	Groups    []partitionGroupJSON `json:"groups"`
}

type partitionGroupJSON struct {
	Group     string `json:"group"`
	Committed int64  `json:"committed"`
	Next      int64  `json:"next"`
	Lag       int64  `json:"lag"`
	Owner     string `json:"owner"`
	LeaseMs   int64  `json:"lease_ms"`
}

func topicOf(t *core.TopicStats) topicJSON {
	out := topicJSON{
		Name: t.Name,
		Settings: settingsJSON{
			Partitions: t.Settings.Partitions,
			Capacity:   t.Settings.Capacity,
			MaxBytes:   t.Settings.MaxBytes,
			AckTimeout: durationText(t.Settings.AckTimeout),
		},
		Partitions: make([]partitionJSON, 0, len(t.Partitions)),
	}
	for i, p := range t.Partitions {
		groups := make([]partitionGroupJSON, 0, len(t.Groups))
		for _, g := range t.Groups {
			c := g.Cursors[i]
			groups = append(groups, partitionGroupJSON{g.Name, c.Committed, c.Next, c.Lag, c.Owner, c.Lease.Milliseconds()})
		}
		out.Partitions = append(out.Partitions, partitionJSON{i, p.Start, p.End, p.Backlog, p.Bytes, groups})
	}
	return out
}

// durationText is d as a person writes it: 1h, not 1h0m0s.
func durationText(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// object answers with v, for calls that are rare enough for reflection.
func (k *call) object(status int, v any) (response, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return response{}, err
	}
	return response{status: status, contentType: jsonType, body: b}, nil
}

func (k *call) listTopics() (response, error) {
	stats := k.server.engine.Stats()
	list := struct {
		Topics []topicJSON `json:"topics"`
	}{make([]topicJSON, 0, len(stats.Topics))}
	for i := range stats.Topics {
		list.Topics = append(list.Topics, topicOf(&stats.Topics[i]))
	}
	return k.object(statusOK, list)
}

func (k *call) getTopic() (response, error) { return k.topicObject(statusOK) }

func (k *call) topicObject(status int) (response, error) {
	stats, err := k.server.engine.Topic(k.conn, k.topic)
	if err != nil {
		return response{}, err
	}
	return k.object(status, topicOf(&stats))
}

func (k *call) createTopic() (r response, err error) {
	var spec core.TopicSpec
	for _, p := range k.route.params {
		value, given := k.query.get(p.name)
		if !given {
			continue
		}
		if _, err := options.SetTopic(&spec, p.name, string(value)); err != nil {
			return r, err
		}
	}
	if err := k.admin(core.CodeUnknownTopic); err != nil {
		return r, err
	}
	created, err := k.server.engine.CreateTopic(k.conn, k.topic, spec)
	if err != nil {
		return r, err
	}
	return k.topicObject(madeOrFound(created))
}

func (k *call) deleteTopic() (r response, err error) {
	if err := k.admin(""); err != nil {
		return r, err
	}
	return response{status: statusNoContent}, k.server.engine.DeleteTopic(k.conn, k.topic)
}

// admin refuses a call that would change the set of topics where that is not
// allowed: one for which looking at the topic has this outcome. Any other error
// is what the engine will say.
func (k *call) admin(wouldChange core.Code) error {
	if k.server.topicAdmin {
		return nil
	}
	if _, err := k.server.engine.Topic(k.conn, k.topic); core.CodeOf(err) != wouldChange {
		return nil
	}
	return core.Errorf(core.CodeAdminDisabled, "cannot change the set of topics over the socket: this broker's topics are in its settings, PODMQ_TOPICS, and PODMQ_TOPIC_ADMIN is false")
}

func madeOrFound(made bool) int {
	if made {
		return statusCreated
	}
	return statusOK
}
