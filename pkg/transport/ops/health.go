package ops

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
)

// Health is how far the broker has come on its way from start to end. The zero
// Health has not come anywhere. It never depends on backlog: a full topic is the
// application's affair, and restarting the broker would lose it.
type Health struct {
	topics, socket, draining atomic.Bool
}

// TopicsDeclared says that the topics and groups of the settings exist.
func (h *Health) TopicsDeclared() { h.topics.Store(true) }

// SocketBound says that clients can connect.
func (h *Health) SocketBound() { h.socket.Store(true) }

// Draining says that the broker is on its way out.
func (h *Health) Draining() { h.draining.Store(true) }

// A check is one line of a verbose answer.
type check struct{ name, fault string }

func (h *Health) live() []check { return []check{{name: "ping"}} }

func (h *Health) ready() []check {
	checks := []check{{name: "ping"}, {name: "topics"}, {name: "socket"}, {name: "running"}}
	if !h.topics.Load() {
		checks[1].fault = "the topics of the settings are not created yet"
	}
	if !h.socket.Load() {
		checks[2].fault = "the socket is not bound yet"
	}
	if h.draining.Load() {
		checks[3].fault = "the broker is draining"
	}
	return checks
}

// answer writes the checks as Kubernetes' own components do: one word when all
// is well, and line by line with ?verbose or when something is not.
func answer(checks func() []check) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var text strings.Builder
		status := http.StatusOK
		for _, c := range checks() {
			if c.fault == "" {
				fmt.Fprintf(&text, "[+]%s ok\n", c.name)
				continue
			}
			status = http.StatusServiceUnavailable
			fmt.Fprintf(&text, "[-]%s failed: %s\n", c.name, c.fault)
		}
		if status == http.StatusOK && !r.URL.Query().Has("verbose") {
			text.Reset()
			text.WriteString("ok")
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		fmt.Fprint(w, text.String())
	}
}
