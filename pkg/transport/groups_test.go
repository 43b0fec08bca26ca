package transport

import (
	"strings"
	"testing"

	"github.com/podmq/podmq/pkg/core"
)

func TestAGroupLooksAsTheContractShowsIt(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.want(201, "PUT /v1/topics/t?partitions=2", nil)
	const fresh = `{"group":"g","type":"ordered","generation":0,"strategy":"sticky","members":[],"cursors":[` +
		`{"partition":0,"committed":0,"next":0,"lag":0,"owner":"","lease_ms":0},{"partition":1,"committed":0,"next":0,"lag":0,"owner":"","lease_ms":0}]}`
	if a := r.want(201, "PUT /v1/topics/t/groups/g", nil); a.text() != fresh {
		t.Errorf("created: %s", a.body)
	}
	if a := r.want(200, "GET /v1/topics/t/groups", nil); a.text() != `{"groups":[`+fresh+`]}` {
		t.Errorf("listed: %s", a.body)
	}
	if a := r.want(201, "PUT /v1/topics/t/groups/g/members/c1", nil); a.text() != `{"member":"c1","generation":1,"partitions":[0,1]}` {
		t.Errorf("joined: %s", a.body)
	}
	if a := r.want(200, "PUT /v1/topics/t/groups/g/members/c1", nil); a.text() != `{"member":"c1","generation":1,"partitions":[0,1]}` {
		t.Errorf("is a member: %s", a.body)
	}
	if a := r.want(200, "GET /v1/topics/t/groups/g", nil); !strings.Contains(a.text(), `"members":[{"member":"c1","partitions":[0,1]}]`) || !strings.Contains(a.text(), `"owner":"c1"`) {
		t.Errorf("with a member: %s", a.body)
	}
	r.want(204, "DELETE /v1/topics/t/groups/g/members/c1", nil)
	r.want(204, "DELETE /v1/topics/t/groups/g/members/c1", nil)
	r.want(204, "DELETE /v1/topics/t/groups/g", nil)
	r.refused(core.CodeUnknownGroup, "g", "DELETE /v1/topics/t/groups/g", nil)
	if a := r.want(200, "GET /v1/topics/t/groups", nil); a.text() != `{"groups":[]}` {
		t.Errorf("listed: %s", a.body)
	}
}

func TestMembersOfAQueueGroupHaveNoPartitions(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.want(201, "PUT /v1/topics/t", nil)
	r.want(201, "PUT /v1/topics/t/groups/q?type=queue", nil)
	if a := r.want(201, "PUT /v1/topics/t/groups/q/members/m", nil); !strings.Contains(a.text(), `"partitions":[]`) {
		t.Errorf("joined: %s", a.body)
	}
	if a := r.want(200, "GET /v1/topics/t/groups/q", nil); !strings.Contains(a.text(), `"members":[{"member":"m","partitions":[]}]`) {
		t.Errorf("%s", a.body)
	}
}

func TestAGroupWithOtherSettingsIsAConflict(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	r.refused(core.CodeGroupExists, "type", "PUT /v1/topics/t/groups/g?type=queue", nil)
	r.want(200, "PUT /v1/topics/t/groups/g?type=ordered&start=earliest&session-timeout=10s", nil)
	r.refused(core.CodeUnknownTopic, "none", "PUT /v1/topics/none/groups/g", nil)
	r.refused(core.CodeUnknownTopic, "none", "GET /v1/topics/none/groups", nil)
	r.refused(core.CodeUnknownGroup, "none", "GET /v1/topics/t/groups/none", nil)
	r.refused(core.CodeUnknownGroup, "none", "PUT /v1/topics/t/groups/none/members/m", nil)
	r.refused(core.CodeUnknownGroup, "none", "DELETE /v1/topics/t/groups/none/members/m", nil)
	r.refused(core.CodeUnknownGroup, "none", "POST /v1/topics/t/groups/none/poll?wait=0", nil)
	r.refused(core.CodeInvalidRequest, "as the name of a group", "PUT /v1/topics/t/groups/a%20b", nil)
}

func TestAMemberThatLeavesEndsItsParkedPoll(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	w := r.wire()
	w.send(request(pollG+"?wait=60s&member=m", ""))
	r.parked(1)
	r.want(204, "DELETE /v1/topics/t/groups/g/members/m", nil)
	if a := w.read(); a.StatusCode != 200 || !strings.HasPrefix(a.text(), `{"messages":[],`) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}
