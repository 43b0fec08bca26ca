package ops

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/transport"
)

// scrapesAtOnce bounds what a misconfigured scraper can cost: each scrape makes
// a snapshot of every topic.
const scrapesAtOnce = 3

// Config is what a handler reports on. All of it is needed.
type Config struct {
	Engine func() core.Stats      // the engine's Stats
	Server func() transport.Stats // the server's Stats
	Health *Health
	Build  Build
	Start  time.Time
	Logger *slog.Logger
	// Partitions also shows a series for each partition, of which there may be
	// 10,000.
	Partitions bool
}

// Build is which program this is.
type Build struct{ Version, Revision, GoVersion string }

// NewHandler serves /livez, /readyz, /healthz and /metrics.
func NewHandler(c Config) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		newCollector(c),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	mux := http.NewServeMux()
	mux.Handle("GET /livez", answer(c.Health.live))
	mux.Handle("GET /readyz", answer(c.Health.ready))
	// What Kubernetes called it before it told the two apart. Without the
	// readiness: a probe that restarts must not fire on a drain.
	mux.Handle("GET /healthz", answer(c.Health.live))
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(c.Logger.Handler(), slog.LevelError),
		ErrorHandling:       promhttp.HTTPErrorOnError,
		MaxRequestsInFlight: scrapesAtOnce,
	}))
	return mux
}
