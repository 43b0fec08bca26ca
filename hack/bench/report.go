package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A report is all that was found.
type report struct {
	When    time.Time             `json:"when"`
	Machine []fact                `json:"machine"`
	Rounds  int                   `json:"rounds"`
	Turn    string                `json:"turn"`
	Results map[setting][]*result `json:"results"`
	Facts   []fact                `json:"facts"`
}

// A fact is one line of a list.
type fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func (r *report) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	text := r.markdown()
	for name, content := range map[string]string{"results.json": string(raw), "results.md": text, "chart.svg": r.chart()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	_, err = fmt.Println(text)
	return err
}

// find returns a result, nil when it was not measured.
func (r *report) find(set setting, experiment, name string) *result {
	for _, x := range r.Results[set] {
		if x.Experiment == experiment && x.Name == name {
			return x
		}
	}
	return nil
}

// of are a result's samples of one value, by round.
func (x *result) of(value func(*sample) float64) (all []float64) {
	for i := range x.Samples {
		all = append(all, value(&x.Samples[i]))
	}
	return all
}

func rate(s *sample) float64 { return s.Rate }

// ratios are those of two results in the same rounds.
func ratios(of, to *result, value func(*sample) float64) (all []float64) {
	a, b := of.of(value), to.of(value)
	for i := range min(len(a), len(b)) {
		all = append(all, a[i]/b[i])
	}
	return all
}

func median(all []float64) float64 {
	s := slices.Sorted(slices.Values(all))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s; %d rounds, turns of %s.\n\n", r.When.Format(time.DateOnly), r.Rounds, r.Turn)
	for _, f := range r.Machine {
		fmt.Fprintf(&b, "- %s: %s\n", f.Name, f.Value)
	}
	b.WriteString("\n| target | asked | reached | rounds from – to | |\n|---|---|---|---|---|\n")
	for _, t := range targets() {
		r.target(&b, &t)
	}
	b.WriteString("\n| setting | work | system | messages/s | from – to | PodMQ is | server CPU µs/message | its reads and writes/message | cores busy: server, load | publish p50, p99 µs | delivery p50, p99 µs |\n|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, set := range []setting{pinned, allCores} {
		for _, x := range r.Results[set] {
			r.row(&b, set, x)
		}
	}
	if len(r.Facts) > 0 {
		b.WriteString("\n| start and memory | |\n|---|---:|\n")
	}
	for _, f := range r.Facts {
		fmt.Fprintf(&b, "| %s | %s |\n", f.Name, f.Value)
	}
	return b.String()
}

func (r *report) target(b *strings.Builder, t *target) {
	of, to := r.find(t.setting, t.experiment, t.of), r.find(t.setting, t.experiment, t.to)
	if of == nil || to == nil {
		return
	}
	value := t.value
	if value == nil {
		value = rate
	}
	all := ratios(of, to, value)
	m := median(all)
	word, asked := "missed", "≥"
	if t.atMost {
		asked = "≤"
	}
	if (m >= t.least) != t.atMost || m == t.least {
		word = "reached"
	}
	fmt.Fprintf(b, "| %s | %s %s× | **%s×** | %s – %s | %s |\n", t.text, asked, short(t.least), short(m), short(slices.Min(all)), short(slices.Max(all)), word)
}

func (r *report) row(b *strings.Builder, set setting, x *result) {
	rates := x.of(rate)
	compared := ""
	if first := r.first(set, x.Experiment); first != x {
		compared = short(median(ratios(first, x, rate))) + "×"
	}
	delivery := ""
	if p99 := median(x.of(func(s *sample) float64 { return s.DeliveryP99 })); p99 > 0 {
		delivery = fmt.Sprintf("%.0f, %.0f", median(x.of(func(s *sample) float64 { return s.DeliveryP50 })), p99)
	}
	fmt.Fprintf(b, "| %s | %s | %s | %s | %s – %s | %s | %s | %s | %.2f, %.2f | %.0f, %.0f | %s |\n",
		set, x.Title, x.Name, thousands(median(rates)), thousands(slices.Min(rates)), thousands(slices.Max(rates)), compared,
		short(median(x.of(func(s *sample) float64 { return s.ServerCPU }))), short(median(x.of(func(s *sample) float64 { return s.Calls }))),
		median(x.of(func(s *sample) float64 { return s.ServerBusy })), median(x.of(func(s *sample) float64 { return s.ClientBusy })),
		median(x.of(func(s *sample) float64 { return s.PublishP50 })), median(x.of(func(s *sample) float64 { return s.PublishP99 })), delivery)
}

// first is the contender that the others of an experiment are compared with.
func (r *report) first(set setting, experiment string) *result {
	for _, x := range r.Results[set] {
		if x.Experiment == experiment {
			return x
		}
	}
	return nil
}

// short writes a number with three digits that count.
func short(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func thousands(v float64) string {
	text := fmt.Sprintf("%.0f", v)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
