package transport

import (
	"strings"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

func TestATopicLooksAsTheContractShowsIt(t *testing.T) {
	t.Parallel()
	r := start(t)
	a := r.want(201, "PUT /v1/topics/orders?partitions=2&capacity=3", nil)
	const empty = `{"name":"orders","settings":{"partitions":2,"capacity":3,"max_bytes":0,"ack_timeout":"30s"},` +
		`"partitions":[{"partition":0,"start":0,"end":0,"backlog":0,"bytes":0,"groups":[]},{"partition":1,"start":0,"end":0,"backlog":0,"bytes":0,"groups":[]}]}`
	if a.text() != empty || a.Header.Get("Content-Type") != "application/json" {
		t.Errorf("created: %s", a.body)
	}
	if a = r.want(200, "PUT /v1/topics/orders?ack-timeout=30s", nil); a.text() != empty {
		t.Errorf("found: %s", a.body)
	}
	r.want(201, "PUT /v1/topics/orders/groups/billing", nil)
	r.want(201, "POST /v1/topics/orders/messages?key=user-a", "o-1")
	r.want(200, "POST /v1/topics/orders/groups/billing/poll", nil)
	a = r.want(200, "GET /v1/topics/orders", nil)
	const held = `{"partition":1,"start":0,"end":1,"backlog":1,"bytes":137,"groups":[{"group":"billing","committed":0,"next":1,"lag":1,"owner":"default","lease_ms":`
	if !strings.Contains(a.text(), held) {
		t.Errorf("with a message: %s, want %s…", a.body, held)
	}
	list := r.want(200, "GET /v1/topics", nil)
	if !strings.HasPrefix(list.text(), `{"topics":[{"name":"orders",`) {
		t.Errorf("listed: %s", list.body)
	}
	r.want(204, "DELETE /v1/topics/orders", nil)
	if list = r.want(200, "GET /v1/topics", nil); list.text() != `{"topics":[]}` {
		t.Errorf("listed: %s", list.body)
	}
	r.refused(core.CodeUnknownTopic, "orders", "GET /v1/topics/orders", nil)
	r.refused(core.CodeUnknownTopic, "orders", "DELETE /v1/topics/orders", nil)
}

func TestATopicWithOtherSettingsIsAConflict(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("partitions=2")
	r.refused(core.CodeTopicExists, "partitions", "PUT /v1/topics/t?partitions=3", nil)
	r.refused(core.CodeInvalidRequest, "as the name of a topic", "PUT /v1/topics/%2e%2e", nil)
	r.refused(core.CodeInvalidRequest, "", "PUT /v1/topics/a%2fb", nil)
	w := r.wire()
	w.send(request("PUT /v1/topics/a%2", ""))
	if a := w.read(); a.StatusCode != 400 || !strings.Contains(a.text(), "cut short") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestParkedCallsEndWithTheirTopic(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	w := r.wire()
	w.send(request(pollG+"?wait=60s", ""))
	r.parked(1)
	r.want(204, "DELETE /v1/topics/t", nil)
	if a := w.read(); a.StatusCode != 404 || a.member("code") != "unknown_topic" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestTopicsCanBeFixed(t *testing.T) {
	t.Parallel()
	r := startWith(t, Config{TopicAdmin: false})
	_, err := r.engine.CreateTopic(t.Context(), "t", core.TopicSpec{})
	r.must(err)
	r.want(200, "PUT /v1/topics/t?partitions=1", nil)
	r.refused(core.CodeTopicExists, "partitions", "PUT /v1/topics/t?partitions=2", nil)
	r.refused(core.CodeAdminDisabled, "PODMQ_TOPICS", "PUT /v1/topics/u", nil)
	r.refused(core.CodeAdminDisabled, "PODMQ_TOPIC_ADMIN", "DELETE /v1/topics/t", nil)
	r.refused(core.CodeUnknownTopic, "u", "DELETE /v1/topics/u", nil)
	r.want(200, "GET /v1/topics/t", nil)
	r.want(201, "PUT /v1/topics/t/groups/g", nil)
	r.want(204, "DELETE /v1/topics/t/groups/g", nil)
}

func TestDurationsAreShownAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", time.Millisecond: "1ms", 30 * time.Second: "30s", time.Minute: "1m", 90 * time.Second: "1m30s", time.Hour: "1h", 10 * time.Hour: "10h",
		time.Hour + time.Second: "1h0m1s", 90 * time.Minute: "1h30m", 10 * time.Minute: "10m", 20 * time.Second: "20s",
	} {
		if got := durationText(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
