package client

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

const (
	// DefaultSocket is where the broker listens when nobody says otherwise.
	DefaultSocket = "/run/podmq/podmq.sock"
	// DefaultDialRetry outlasts the restart of a crashed sidecar, which takes
	// Kubernetes one to two seconds the first time.
	DefaultDialRetry = 5 * time.Second

	// idleConns is how many connections are kept for the next call. A parked
	// poll occupies one of its own.
	idleConns = 64
	// idleTime is how long they are kept.
	idleTime = 90 * time.Second
)

// Config says how to reach a broker. The zero Config is ready to use.
type Config struct {
	// Address is the path of the socket ("/run/podmq/podmq.sock", or the same
	// with "unix://" before it), or "http://127.0.0.1:port" where the broker has
	// PODMQ_HTTP_ADDR set. Empty: the variable PODMQ_SOCKET, else DefaultSocket.
	Address string
	// DialRetry is how long a call goes on dialling while nobody listens.
	// 0: DefaultDialRetry; less: it dials once.
	DialRetry time.Duration
}

// A Client makes calls to one broker. It dials when it needs to, so there may be
// no broker yet when it is made.
type Client struct {
	http      *http.Client
	base      string // of every URL, without a slash at its end
	address   string // as errors name it
	dialRetry time.Duration
	epoch     atomic.Pointer[string]
}

// New makes a client. It does not dial; the only error is an address that cannot
// be one.
func New(cfg Config) (*Client, error) {
	address := cmp.Or(cfg.Address, os.Getenv("PODMQ_SOCKET"), DefaultSocket)
	c := &Client{address: address, dialRetry: cmp.Or(cfg.DialRetry, DefaultDialRetry)}
	transport := &http.Transport{
		MaxIdleConnsPerHost: idleConns,
		IdleConnTimeout:     idleTime,
		DisableCompression:  true,
	}
	if strings.HasPrefix(address, "http://") {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
			return nil, core.Invalid("address", "cannot use address %.200q: it is http://host:port", address)
		}
		c.base = "http://" + u.Host
	} else {
		path := strings.TrimPrefix(address, "unix://")
		if !strings.HasPrefix(path, "/") {
			return nil, core.Invalid("address", "cannot use address %.200q: it is the full path of a socket, or http://host:port", address)
		}
		c.base = "http://podmq" // the name is for the Host header alone
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		}
	}
	c.http = &http.Client{Transport: transport}
	return c, nil
}

// Address is where the client calls, as it was configured.
func (c *Client) Address() string { return c.address }

// Epoch names the run of the broker that answered last, "" before the first
// answer. Another epoch is another run: its offsets start anew, and receipts of
// the one before are stale.
func (c *Client) Epoch() string {
	if e := c.epoch.Load(); e != nil {
		return *e
	}
	return ""
}

// Close closes the connections that no call is using. Calls may still be made.
func (c *Client) Close() { c.http.CloseIdleConnections() }
