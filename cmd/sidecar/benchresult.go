package main

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/podmq/podmq/pkg/transport/loadgen"
)

// A benchResult is what bench shows.
type benchResult struct {
	Producers  int     `json:"producers"`
	Consumers  int     `json:"consumers"` // of each group
	Groups     int     `json:"groups"`    // that got every message
	GroupType  string  `json:"type"`
	Partitions int     `json:"partitions"`
	Payload    int     `json:"payload_bytes"`
	Batch      int     `json:"batch"`
	Format     string  `json:"format"`
	AskedRate  float64 `json:"asked_rate,omitempty"`

	Seconds   float64 `json:"seconds"` // to the last delivery
	Published uint64  `json:"published"`
	Delivered uint64  `json:"delivered"` // and acknowledged, in all groups together
	Rate      float64 `json:"messages_per_second"`
	MBs       float64 `json:"mb_per_second"` // of payload, published

	Publish  latencies  `json:"publish_latency"`
	Delivery *latencies `json:"delivery_latency,omitempty"`
}

// latencies are in µs.
type latencies struct {
	P50  float64 `json:"p50_us"`
	P90  float64 `json:"p90_us"`
	P99  float64 `json:"p99_us"`
	P999 float64 `json:"p999_us"`
	Max  float64 `json:"max_us"`
}

func newLatencies(h *hdrhistogram.Histogram) latencies {
	at := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1e3 }
	return latencies{at(50), at(90), at(99), at(99.9), float64(h.Max()) / 1e3}
}

func newBenchResult(o *benching, m *loadgen.Meter) *benchResult {
	took := m.Tally.Took().Seconds()
	r := &benchResult{
		Producers: o.producers, Consumers: o.consumers, Groups: o.groups, GroupType: o.groupType,
		Partitions: o.partitions, Payload: o.size, Batch: o.batch, Format: o.format, AskedRate: o.rate,
		Seconds: took, Published: m.Tally.Stored(), Delivered: m.Tally.Delivered(),
		Publish: newLatencies(m.Publish()),
	}
	if o.consumers == 0 {
		r.Groups = 0
	}
	if took > 0 {
		r.Rate = float64(r.Published) / took
		r.MBs = r.Rate * float64(o.size) / 1e6
	}
	if d := m.Delivery(); d.TotalCount() > 0 {
		l := newLatencies(d)
		r.Delivery = &l
	}
	return r
}

func (r *benchResult) write(to io.Writer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(to)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	fmt.Fprintf(to, "%d messages of %d B published and delivered to %d groups in %.2fs: %.0f messages/s, %.1f MB/s\n\n",
		r.Published, r.Payload, r.Groups, r.Seconds, r.Rate, r.MBs)
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "latency\tp50\tp90\tp99\tp99.9\tmax\t")
	r.Publish.row(w, "publish")
	if r.Delivery != nil {
		r.Delivery.row(w, "publish to delivery")
	}
	return w.Flush()
}

func (l *latencies) row(w io.Writer, name string) {
	fmt.Fprint(w, name)
	for _, v := range []float64{l.P50, l.P90, l.P99, l.P999, l.Max} {
		fmt.Fprintf(w, "\t%v", time.Duration(v*1e3).Round(time.Microsecond))
	}
	fmt.Fprintln(w, "\t")
}

// showProgress writes a line each second, until the function it returns is
// called.
func showProgress(to io.Writer, t *loadgen.Tally) (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		var stored, delivered uint64
		for n := 1; ; n++ {
			select {
			case <-tick.C:
				s, d := t.Stored(), t.Delivered()
				fmt.Fprintf(to, "%3ds  published %9d/s  delivered %9d/s\n", n, s-stored, d-delivered)
				stored, delivered = s, d
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
	}
}
