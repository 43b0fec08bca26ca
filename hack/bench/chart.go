package main

import (
	"fmt"
	"html"
	"strings"
)

// chart draws the headline: one panel for each of two works in each setting, a
// bar for each system.
func (r *report) chart() string {
	const (
		width, left, right = 860, 170, 110
		bar, gap, title    = 18, 6, 34
	)
	var b strings.Builder
	y := 10
	for _, set := range []setting{pinned, allCores} {
		for _, experiment := range []string{"one", "batch-100"} {
			panel := r.panel(set, experiment)
			if len(panel) == 0 {
				continue
			}
			most := 0.0
			for _, x := range panel {
				most = max(most, median(x.of(rate)))
			}
			fmt.Fprintf(&b, `<text x="10" y="%d" class="t">%s, %s: messages/s, published, delivered and acknowledged</text>`+"\n", y+18, html.EscapeString(panel[0].Title), set)
			y += title
			for _, x := range panel {
				m := median(x.of(rate))
				long := int(m / most * (width - left - right))
				class := "peer"
				if strings.HasPrefix(x.Name, podmqFrames) {
					class = "own"
				}
				fmt.Fprintf(&b, `<text x="%d" y="%d" class="n">%s</text><rect x="%d" y="%d" width="%d" height="%d" class="%s"/><text x="%d" y="%d" class="v">%s</text>`+"\n",
					left-8, y+14, html.EscapeString(x.Name), left, y, max(long, 1), bar, class, left+long+6, y+14, thousands(m))
				y += bar + gap
			}
			y += gap
		}
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">
<style>.t{font-weight:bold}.n{text-anchor:end}.own{fill:#1f6feb}.peer{fill:#8b949e}text{fill:#1f2328}</style>
<rect width="100%%" height="100%%" fill="#ffffff"/>
%s</svg>
`, width, y, width, y, b.String())
}

// panel is what is drawn of an experiment: what a user can choose, not the
// ceiling.
func (r *report) panel(set setting, experiment string) (panel []*result) {
	for _, x := range r.Results[set] {
		if x.Experiment == experiment && x.Name != ceiling {
			panel = append(panel, x)
		}
	}
	return panel
}
