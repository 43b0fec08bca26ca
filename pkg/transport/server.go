package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// maxConnections is of all listeners together.
const maxConnections = 10_000

// Config is what a Server is made from.
type Config struct {
	Engine core.Engine
	// Logger gets one line an event; nil discards them.
	Logger *slog.Logger
	// MaxMessageBytes bounds payload, key and headers of one message, 0:
	// core.DefaultMessageBytes.
	MaxMessageBytes int
	// TopicAdmin allows creating and deleting topics over the socket.
	TopicAdmin bool
	// InflightBytes is the budget for bodies being received and answers being
	// written, as far as they are large, half of it for each; 0: 32 MiB.
	InflightBytes int64
}

const defaultInflight = 32 << 20

// A Server serves the socket API.
type Server struct {
	engine     core.Engine
	log        *slog.Logger
	maxMessage int
	topicAdmin bool
	max        int // connections
	limits     limits
	router     *router
	bodies     *budget // being received, or waiting for room
	answers    *budget // being written; their own, so that what waits for room cannot stop those who make it
	clock      *clock
	metrics    *metrics
	buffers    buffers
	readers    readers
	epochLine  string // of every answer's head

	stopping chan struct{}  // closed by Shutdown
	running  sync.WaitGroup // connections
	swept    chan struct{}  // closed when sweep is to end
	sweeper  sync.WaitGroup

	mu        sync.Mutex
	started   bool
	hangups   *hangups // while started
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	full      bool          // the last connection was refused
	ended     chan struct{} // nil until Shutdown; closed when no connection is left
}

// NewServer makes a server of c.Engine. It listens to nothing yet.
func NewServer(c Config) *Server {
	s := &Server{
		engine:     c.Engine,
		log:        c.Logger,
		maxMessage: c.MaxMessageBytes,
		topicAdmin: c.TopicAdmin,
		max:        maxConnections,
		limits:     defaultLimits,
		router:     newRouter(),
		clock:      newClock(),
		epochLine:  "Podmq-Epoch: " + c.Engine.Epoch() + "\r\n",
		stopping:   make(chan struct{}),
		swept:      make(chan struct{}),
		listeners:  make(map[net.Listener]struct{}),
		conns:      make(map[*conn]struct{}),
	}
	s.metrics = newMetrics(s.router, s.clock.start)
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.maxMessage == 0 {
		s.maxMessage = core.DefaultMessageBytes
	}
	if c.InflightBytes == 0 {
		c.InflightBytes = defaultInflight
	}
	s.bodies, s.answers = newBudget(c.InflightBytes/2), newBudget(c.InflightBytes/2)
	return s
}

// Serve accepts connections from l until Shutdown, and then returns nil, also
// when that came before. It closes l in any case. It may be called for several
// listeners at once.
func (s *Server) Serve(l net.Listener) error {
	if err := s.begin(l); err != nil {
		return errors.Join(err, l.Close())
	}
	for pause := time.Duration(0); ; {
		nc, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
			s.accept(nc)
		case s.stops():
			return nil
		case !passes(err):
			return errors.Join(fmt.Errorf("cannot accept connections on %s: %w", l.Addr(), err), s.forget(l))
		default:
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.log.Warn("cannot accept a connection now", "error", err, "pause", pause)
			select {
			case <-time.After(pause):
			case <-s.stopping:
			}
		}
	}
}

func (s *Server) stops() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// passes reports whether accepting may work again later.
func passes(err error) bool {
	for _, e := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (s *Server) begin(l net.Listener) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stops() {
		_ = l.Close() // and the first Accept says so
		return nil
	}
	if !s.started {
		h, err := newHangups()
		if err != nil {
			return fmt.Errorf("cannot watch connections for hang-ups: %w", err)
		}
		s.hangups = h
		s.started = true
		s.sweeper.Go(s.sweep)
	}
	s.listeners[l] = struct{}{}
	return nil
}

func (s *Server) forget(l net.Listener) error {
	s.mu.Lock()
	delete(s.listeners, l)
	s.mu.Unlock()
	return l.Close()
}

func (s *Server) accept(nc net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stops():
		_ = nc.Close()
	case len(s.conns) >= s.max:
		if !s.full {
			s.full = true
			s.log.Warn("refusing connections: too many are open", "connections", len(s.conns))
		}
		_ = nc.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = nc.Write(s.tooManyConnections())
		_ = nc.Close()
	default:
		s.full = false
		c := newConn(s, nc)
		s.conns[c] = struct{}{}
		s.hangups.add(c)
		s.running.Go(c.serve)
	}
}

// release forgets a connection that has ended.
func (s *Server) release(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// Shutdown stops accepting, closes idle connections at once and every other
// when its answer is written, and waits for that. When ctx ends first, it cuts
// the connections that are left and returns the context's error. Calls that
// wait in the engine are not ended by it: core.Engine.Drain comes before. It may
// be called more than once.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if s.ended == nil {
		close(s.stopping)
		s.ended = make(chan struct{})
		for l := range s.listeners {
			_ = l.Close()
		}
		for c := range s.conns {
			c.rest()
		}
		go s.end()
	}
	s.mu.Unlock()

	var err error
	select {
	case <-s.ended:
	case <-ctx.Done():
		err = fmt.Errorf("cannot wait for all answers: %w", context.Cause(ctx))
		s.mu.Lock()
		for c := range s.conns {
			c.cut()
		}
		s.mu.Unlock()
		<-s.ended
	}
	return err
}

// end waits for the connections and then stops what looks after them.
func (s *Server) end() {
	s.running.Wait()
	close(s.swept)
	s.sweeper.Wait()
	if s.hangups != nil {
		s.hangups.close()
	}
	close(s.ended)
}
