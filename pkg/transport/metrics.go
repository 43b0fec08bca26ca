package transport

import (
	"sort"
	"sync/atomic"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// Stats is one look at a server.
type Stats struct {
	Connections int
	LastRequest time.Time // when the last request came; the start of the server before the first
	Requests    []RouteStats
}

// RouteStats is what was answered on one route with one status code.
type RouteStats struct {
	Route   string // the operationId in the OpenAPI document; "none" for what is no route
	Code    int
	Count   uint64
	Seconds core.Histogram // from the end of the request's head until the answer is made, waits included
}

// Stats looks at the server.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	n := len(s.conns)
	s.mu.Unlock()
	m := s.metrics
	return Stats{
		Connections: n,
		LastRequest: m.start.Add(time.Duration(m.last.Load())),
		Requests:    m.snapshot(),
	}
}

// metrics counts answers, with no lock and no allocation once a route has
// answered with a code.
type metrics struct {
	start  time.Time
	names  []string     // by route
	last   atomic.Int64 // when the last request came, ns since start
	series [][lastStatus - firstStatus + 1]atomic.Pointer[series]
}

const (
	firstStatus = 200
	lastStatus  = 507
)

type series struct {
	counts [len(core.LatencyBounds) + 1]atomic.Uint64
	sum    atomic.Int64 // ns
}

func newMetrics(r *router, start time.Time) *metrics {
	m := &metrics{start: start}
	for _, route := range r.routes {
		m.names = append(m.names, route.name)
	}
	m.names = append(m.names, (*route)(nil).label())
	m.series = make([][lastStatus - firstStatus + 1]atomic.Pointer[series], len(m.names))
	return m
}

func (m *metrics) requested(sinceStart time.Duration) { m.last.Store(int64(sinceStart)) }

// observe counts an answer; a nil route is none.
func (m *metrics) observe(r *route, status int, took time.Duration) {
	i := len(m.series) - 1
	if r != nil {
		i = r.index
	}
	p := &m.series[i][status-firstStatus]
	s := p.Load()
	if s == nil {
		p.CompareAndSwap(nil, new(series))
		s = p.Load()
	}
	s.counts[sort.Search(len(core.LatencyBounds), func(i int) bool { return took <= core.LatencyBounds[i] })].Add(1)
	s.sum.Add(int64(took))
}

func (m *metrics) snapshot() []RouteStats {
	var all []RouteStats
	for i := range m.series {
		for j := range m.series[i] {
			s := m.series[i][j].Load()
			if s == nil {
				continue
			}
			r := RouteStats{Route: m.names[i], Code: firstStatus + j}
			for b := range s.counts {
				r.Seconds.Counts[b] = s.counts[b].Load()
			}
			r.Seconds.Sum = time.Duration(s.sum.Load())
			r.Count = r.Seconds.Count()
			all = append(all, r)
		}
	}
	return all
}
