package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// socketDir makes a directory whose path is short enough for a socket in it.
func socketDir(t *testing.T) string {
	dir, err := os.MkdirTemp("", "podmq")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// serveHTTP answers at path until the test ends.
func serveHTTP(t *testing.T, path string, h http.HandlerFunc) {
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Error(err)
		return
	}
	s := httptest.NewUnstartedServer(h)
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
}

func newClient(t *testing.T, cfg Config) *Client {
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestAddress(t *testing.T) {
	for address, ok := range map[string]bool{
		"/run/podmq/podmq.sock":        true,
		"unix:///run/podmq/podmq.sock": true,
		"http://127.0.0.1:9788":        true,
		"http://127.0.0.1:9788/":       true,
		"podmq.sock":                   false,
		"unix://podmq.sock":            false,
		"https://127.0.0.1:9788":       false,
		"http://":                      false,
		"http://127.0.0.1:9788/v1":     false,
	} {
		c, err := New(Config{Address: address})
		if (err == nil) != ok {
			t.Errorf("New(%q) returned %v", address, err)
		}
		if ok && c.Address() != address {
			t.Errorf("the address of New(%q) is %q", address, c.Address())
		}
		if !ok && core.CodeOf(err) != core.CodeInvalidRequest {
			t.Errorf("New(%q) returned %v, want %s", address, err, core.CodeInvalidRequest)
		}
	}
}

func TestAddressComesFromTheEnvironment(t *testing.T) {
	t.Setenv("PODMQ_SOCKET", "/somewhere/podmq.sock")
	if a := newClient(t, Config{}).Address(); a != "/somewhere/podmq.sock" {
		t.Errorf("the address is %q, want that of PODMQ_SOCKET", a)
	}
	t.Setenv("PODMQ_SOCKET", "")
	if a := newClient(t, Config{}).Address(); a != DefaultSocket {
		t.Errorf("the address is %q, want %q", a, DefaultSocket)
	}
}

// roundTrip is a function in the place of a connection.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestCallsWaitForABrokerThatStartsLater(t *testing.T) {
	for name, missing := range map[string]func(path string){
		"no socket": func(string) {},
		"a dead one": func(path string) {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
			if err != nil {
				t.Fatal(err)
			}
			l.SetUnlinkOnClose(false)
			_ = l.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(socketDir(t), "s")
			missing(path)
			c := newClient(t, Config{Address: path, DialRetry: time.Hour})
			real, dials := c.http.Transport, 0
			c.http.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
				resp, err := real.RoundTrip(r)
				if dials++; dials == 2 {
					_ = os.Remove(path)
					serveHTTP(t, path, func(w http.ResponseWriter, _ *http.Request) {
						w.Header().Set("Podmq-Epoch", "e7")
						_, _ = w.Write([]byte(`{"messages":[{"partition":3,"offset":9}]}`))
					})
				}
				return resp, err
			})
			t.Cleanup(func() { real.(*http.Transport).CloseIdleConnections() })
			at, err := c.Publish(t.Context(), "orders", Message{Payload: []byte("x")})
			if err != nil || at != (Placement{3, 9}) || dials != 3 {
				t.Errorf("Publish returned %v, %v after %d dials, want 3:9 after 3", at, err, dials)
			}
			if c.Epoch() != "e7" {
				t.Errorf("the epoch is %q, want e7", c.Epoch())
			}
		})
	}
}

func TestCallsSayWhereNobodyListens(t *testing.T) {
	path := filepath.Join(socketDir(t), "s")
	c := newClient(t, Config{Address: path, DialRetry: -1})
	_, err := c.Publish(t.Context(), "orders", Message{})
	if !errors.Is(err, syscall.ENOENT) || !strings.HasPrefix(err.Error(), "cannot call the broker at "+path) {
		t.Errorf("Publish returned %v", err)
	}
	if Unknown(err) {
		t.Error("Unknown is true where nothing was sent")
	}
}

func TestCallsWaitWhereTooManyDial(t *testing.T) {
	path := filepath.Join(socketDir(t), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	raw, err := l.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) { _ = syscall.Listen(int(fd), 0) }); err != nil { // a queue of one
		t.Fatal(err)
	}
	for range 10 {
		var nc net.Conn
		if nc, err = net.Dial("unix", path); err != nil {
			break
		}
		defer nc.Close()
	}
	if !nobodyListens(err) {
		t.Errorf("dialling beyond the queue returned %v, after which a call would not dial again", err)
	}
}

func TestACallThatEndsWhileItDialsSaysBoth(t *testing.T) {
	c := newClient(t, Config{Address: filepath.Join(socketDir(t), "s"), DialRetry: time.Hour})
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	real := c.http.Transport
	c.http.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		resp, err := real.RoundTrip(r)
		cancel(cause) // after the dial has failed
		return resp, err
	})
	_, err := c.Publish(ctx, "orders", Message{})
	if !errors.Is(err, cause) || Unknown(err) {
		t.Errorf("Publish returned %v, Unknown is %v", err, Unknown(err))
	}
}

func TestAPublishWithoutAnAnswerIsUnknownAndNotRepeated(t *testing.T) {
	path := filepath.Join(socketDir(t), "s")
	var requests atomic.Int32
	serveHTTP(t, path, func(http.ResponseWriter, *http.Request) {
		requests.Add(1)
		panic(http.ErrAbortHandler) // closes the connection
	})
	_, err := newClient(t, Config{Address: path}).Publish(t.Context(), "orders", Message{})
	if err == nil || !Unknown(err) || requests.Load() != 1 {
		t.Errorf("after %d requests Publish returned %v, Unknown is %v", requests.Load(), err, Unknown(err))
	}
}

func TestARefusalIsKnown(t *testing.T) {
	c, _ := newFake(t, func(string, url.Values, *http.Request) (*http.Response, error) {
		return refuse(429, core.CodePartitionFull, 1500*time.Millisecond)
	})
	_, err := c.Publish(t.Context(), "orders", Message{})
	var refused *core.Error
	if !errors.As(err, &refused) || refused.Code != core.CodePartitionFull || refused.RetryAfter != 1500*time.Millisecond || Unknown(err) {
		t.Errorf("Publish returned %#v, Unknown is %v", err, Unknown(err))
	}
	if Unknown(nil) {
		t.Error("nil is Unknown")
	}
}

func TestACallEndsWithTheCauseOfItsContext(t *testing.T) {
	path := filepath.Join(socketDir(t), "s")
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	serveHTTP(t, path, func(_ http.ResponseWriter, r *http.Request) {
		cancel(cause)
		<-r.Context().Done()
	})
	if _, err := newClient(t, Config{Address: path}).Topics(ctx); !errors.Is(err, cause) {
		t.Errorf("Topics returned %v, want %v", err, cause)
	}
}

func TestProblemDocuments(t *testing.T) {
	e, ok := problem([]byte(`{"type":"https://podmq.io/problems/partition_full","title":"t","status":429,"detail":"cannot publish",
		"code":"partition_full","retryable":true,"retry_after_ms":250,"partition":1,"slowest":{"group":"billing"},"big":9007199254740993,"ok":true}`))
	if !ok || e.Code != core.CodePartitionFull || e.Detail != "cannot publish" || e.RetryAfter != 250*time.Millisecond {
		t.Fatalf("problem returned %+v, %v", e, ok)
	}
	var names []string
	for _, f := range e.Fields {
		names = append(names, f.Name)
	}
	if want := []string{"partition", "slowest", "big", "ok"}; !slices.Equal(names, want) {
		t.Errorf("the fields are %q, want %q", names, want)
	}
	if e.Fields[2].Value != int64(9007199254740993) {
		t.Errorf("the large number is %v", e.Fields[2].Value)
	}
	for _, bad := range []string{"", "[]", "{", `{"detail":"no code"}`, `{"code":7}`, `{"code":"x",`} {
		if e, ok := problem([]byte(bad)); ok {
			t.Errorf("problem(%q) returned %v", bad, e)
		}
	}
}

func TestAnAnswerOfSomethingElseIsAnError(t *testing.T) {
	c, _ := newFake(t, func(string, url.Values, *http.Request) (*http.Response, error) {
		return response(502, http.Header{"Content-Type": {"text/html"}}, []byte("<h1>Bad Gateway</h1>")), nil
	})
	_, err := c.Topics(t.Context())
	if core.CodeOf(err) != core.CodeInternal || !strings.Contains(err.Error(), "Bad Gateway") {
		t.Errorf("Topics returned %v", err)
	}
}
