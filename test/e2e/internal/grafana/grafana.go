// Package grafana reads what the tests need of a Grafana dashboard: its panels
// and their queries.
package grafana

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Dashboard is a dashboard's panels.
type Dashboard struct {
	Title  string  `json:"title"`
	Panels []Panel `json:"panels"`
}

// Panel is one panel or row.
type Panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	GridPos     struct {
		X, Y, W, H int
	} `json:"gridPos"`
	Targets []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
}

// Query is one query of a panel.
type Query struct{ Panel, Expr string }

// Load reads a dashboard from a file.
func Load(t testing.TB, file string) Dashboard {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var d Dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// Queries are all queries, in the order of the panels.
func (d Dashboard) Queries() []Query {
	var all []Query
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all = append(all, Query{p.Title, target.Expr})
		}
	}
	return all
}

var variable = regexp.MustCompile(`\$(namespace|pod|topic|group)\b`)

// Expand puts in for Grafana's variables what "All" and a range of five minutes
// would.
func Expand(query string) string {
	query = variable.ReplaceAllString(query, ".*")
	return strings.NewReplacer("$__rate_interval", "5m", "$__range", "5m").Replace(query)
}
