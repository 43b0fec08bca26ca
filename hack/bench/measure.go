package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/podmq/podmq/pkg/transport/loadgen"
)

// options are what the command line says.
type options struct {
	sidecar  string
	out      string
	settings []setting
	facts    bool
	rounds   int
	turn     time.Duration
	only     *regexp.Regexp // experiments
	who      *regexp.Regexp // systems
	progress io.Writer
}

// A result is all samples of one contender in one experiment, one a round.
type result struct {
	Experiment string   `json:"experiment"`
	Title      string   `json:"title"`
	Name       string   `json:"name"`
	Samples    []sample `json:"samples"`
}

// A stable has every system running, idle but for the one whose turn it is.
type stable struct {
	podmq   *podmq
	ceiling *pingPong
	systems map[string]system
	stops   []func()
}

func (s *stable) stop() {
	for _, stop := range s.stops {
		stop()
	}
}

func startAll(ctx context.Context, set setting, o *options, dir string) (s *stable, err error) {
	s = &stable{}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	if s.podmq, err = startPodMQ(ctx, set, o.sidecar, dir); err != nil {
		return s, err
	}
	s.stops = append(s.stops, s.podmq.stop)
	redis, err := startRedis(ctx, set, dir)
	if err != nil {
		return s, err
	}
	s.stops = append(s.stops, redis.stop)
	bean, err := startBeanstalkd(ctx, set, dir)
	if err != nil {
		return s, err
	}
	s.stops = append(s.stops, bean.stop)
	nats, err := startNATS(ctx, set, dir)
	if err != nil {
		return s, err
	}
	s.stops = append(s.stops, nats.stop)
	if s.ceiling, err = startPingPong(ctx, set, dir); err != nil {
		return s, err
	}
	s.stops = append(s.stops, s.ceiling.stop)
	s.systems = map[string]system{
		podmqFrames: podmqWay{podmq: s.podmq, format: loadgen.Frames},
		podmqJSON:   podmqWay{podmq: s.podmq, format: loadgen.JSON},
		podmqTCP:    podmqWay{podmq: s.podmq, format: loadgen.Frames, tcp: true},
		podmqQueue:  podmqWay{podmq: s.podmq, format: loadgen.Frames, queue: true},
		redisName:   redis,
		beanName:    bean,
		natsName:    nats,
		ceiling:     s.ceiling,
	}
	return s, nil
}

// measure makes all rounds of all experiments in one setting.
func measure(ctx context.Context, set setting, o *options) (results []*result, err error) {
	dir, err := os.MkdirTemp("", "podmq-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s, err := startAll(ctx, set, o, dir)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	by := make(map[*contender]*result)
	experiments := plan()
	for round := range o.rounds {
		for i := range experiments {
			e := &experiments[i]
			if !o.only.MatchString(e.name) {
				continue
			}
			for j := range e.who {
				c := &e.who[j]
				if by[c] == nil && o.who.MatchString(c.name()) {
					by[c] = &result{Experiment: e.name, Title: e.title, Name: c.name()}
					results = append(results, by[c])
				}
			}
			if err := s.round(ctx, e, round, o, by); err != nil {
				return nil, fmt.Errorf("%s, %s: %w", set, e.name, err)
			}
		}
		fmt.Fprintf(o.progress, "%s: round %d of %d\n", set, round+1, o.rounds)
	}
	return results, nil
}

// round gives each contender a turn, beginning with another one each time.
func (s *stable) round(ctx context.Context, e *experiment, round int, o *options, by map[*contender]*result) error {
	d := e.turn
	if d == 0 {
		d = o.turn
	}
	for j := range e.who {
		c := &e.who[(j+round)%len(e.who)]
		if by[c] == nil {
			continue
		}
		if c.system == ceiling {
			if err := s.measureSizes(ctx, &c.work); err != nil {
				return err
			}
		}
		x, err := turn(ctx, s.systems[c.system], &c.work, d)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name(), err)
		}
		by[c].Samples = append(by[c].Samples, x)
	}
	return ctx.Err()
}

// measureSizes finds out how large requests and answers of PodMQ are in this
// work, for the ceiling to exchange as much.
func (s *stable) measureSizes(ctx context.Context, w *work) error {
	m := &measured{system: s.systems[podmqFrames], sizes: &s.ceiling.sizes}
	_, err := turn(ctx, m, w, 50*time.Millisecond)
	return err
}

// measured is a system whose sizes are noted.
type measured struct {
	system
	sizes *sizes
}

func (s *measured) talks(ctx context.Context, w *work, m *loadgen.Meter) ([]loadgen.Talk, error) {
	talks, err := s.system.talks(ctx, w, m)
	if err != nil {
		return nil, err
	}
	*s.sizes = sizes{}
	// One of each kind is enough, and no two loops then write to one place.
	for i, n := range map[int][2]*int{0: {&s.sizes.poll, &s.sizes.batch}, len(talks) - 1: {&s.sizes.publish, &s.sizes.stored}} {
		talks[i].Session = &sizing{Session: talks[i].Session, request: n[0], answer: n[1]}
	}
	return talks, nil
}

// sizing notes the largest request and answer of a session.
type sizing struct {
	loadgen.Session
	request, answer *int
}

func (s *sizing) Say(now int64, out []byte) ([]byte, int64) {
	before := len(out)
	out, again := s.Session.Say(now, out)
	*s.request = max(*s.request, len(out)-before)
	return out, again
}

func (s *sizing) Hear(now int64, in []byte) (int, error) {
	used, err := s.Session.Hear(now, in)
	*s.answer = max(*s.answer, used)
	return used, err
}
