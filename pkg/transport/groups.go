package transport

import (
	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/transport/options"
)

type groupJSON struct {
	Group      string         `json:"group"`
	Type       core.GroupType `json:"type"`
	Generation int64          `json:"generation"`
	Strategy   core.Strategy  `json:"strategy"`
	Members    []memberJSON   `json:"members"`
	Cursors    []cursorJSON   `json:"cursors"`
}

type memberJSON struct {
	Member     string `json:"member"`
	Partitions []int  `json:"partitions"`
}

type cursorJSON struct {
	Partition int    `json:"partition"`
	Committed int64  `json:"committed"`
	Next      int64  `json:"next"`
	Lag       int64  `json:"lag"`
	Owner     string `json:"owner"`
	LeaseMs   int64  `json:"lease_ms"`
}

func groupOf(g *core.GroupStats) groupJSON {
	out := groupJSON{
		Group:      g.Name,
		Type:       g.Settings.Type,
		Generation: g.Generation,
		Strategy:   g.Settings.Strategy,
		Members:    make([]memberJSON, 0, len(g.Members)),
		Cursors:    make([]cursorJSON, 0, len(g.Cursors)),
	}
	for _, m := range g.Members {
		out.Members = append(out.Members, memberJSON{m.Member, orEmpty(m.Partitions)})
	}
	for i, c := range g.Cursors {
		out.Cursors = append(out.Cursors, cursorJSON{i, c.Committed, c.Next, c.Lag, c.Owner, c.Lease.Milliseconds()})
	}
	return out
}

// orEmpty makes a list that is [] in JSON, never null.
func orEmpty(ns []int) []int {
	if ns == nil {
		return []int{}
	}
	return ns
}

func (k *call) listGroups() (r response, err error) {
	stats, err := k.server.engine.Topic(k.conn, k.topic)
	if err != nil {
		return r, err
	}
	list := struct {
		Groups []groupJSON `json:"groups"`
	}{make([]groupJSON, 0, len(stats.Groups))}
	for i := range stats.Groups {
		list.Groups = append(list.Groups, groupOf(&stats.Groups[i]))
	}
	return k.object(statusOK, list)
}

func (k *call) getGroup() (response, error) { return k.groupObject(statusOK) }

func (k *call) groupObject(status int) (response, error) {
	stats, err := k.server.engine.Group(k.conn, k.topic, k.group)
	if err != nil {
		return response{}, err
	}
	return k.object(status, groupOf(&stats))
}

func (k *call) createGroup() (r response, err error) {
	var spec core.GroupSpec
	for _, p := range k.route.params {
		value, given := k.query.get(p.name)
		if !given {
			continue
		}
		if _, err := options.SetGroup(&spec, p.name, string(value)); err != nil {
			return r, err
		}
	}
	created, err := k.server.engine.CreateGroup(k.conn, k.topic, k.group, spec)
	if err != nil {
		return r, err
	}
	return k.groupObject(madeOrFound(created))
}

func (k *call) deleteGroup() (response, error) {
	return response{status: statusNoContent}, k.server.engine.DeleteGroup(k.conn, k.topic, k.group)
}
