package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/kelseyhightower/envconfig"

	"github.com/podmq/podmq/pkg/core"
)

// prefix begins the name of every variable; envconfig derives the rest from the
// field's.
const prefix = "PODMQ"

// config is every setting there is. Its fields' types read them (values.go,
// declared.go), defaults says what counts where a variable is absent or empty,
// and the tags say what a person needs to know. Not used are envconfig's own
// names (it would also read them without the prefix) and its defaults (an empty
// variable, as templates leave behind, would not get them).
type config struct {
	Topics            topicList   `split_words:"true" desc:"topics to create: name?option=value&..., separated by ; or new lines. Options: partitions, capacity, max-bytes, ack-timeout, groups=a,b"`
	Groups            groupList   `split_words:"true" desc:"groups with settings of their own: topic/group?option=value&..., separated by ; or new lines. Options: type, start, strategy, session-timeout, max-lease, expires"`
	Partitions        count       `split_words:"true" desc:"partitions of a topic that does not say"`
	Capacity          count       `split_words:"true" desc:"messages a partition of a topic that does not say"`
	AckTimeout        duration    `split_words:"true" desc:"how long a lease lasts in a topic that does not say"`
	MaxBytes          size        `split_words:"true" desc:"bytes held by all topics together" absent:"half of the container's memory limit, else 64MiB"`
	MaxMessageBytes   size        `split_words:"true" desc:"payload plus key plus headers of one message"`
	Socket            filePath    `split_words:"true" desc:"path of the Unix socket; the commands that talk to a broker use it as well"`
	SocketMode        fileMode    `split_words:"true" desc:"permissions of the socket, octal"`
	HTTPAddr          loopback    `split_words:"true" desc:"the same API on TCP, loopback only, for languages without Unix sockets, such as 127.0.0.1:8080"`
	MetricsAddr       address     `split_words:"true" desc:"address of health and metrics"`
	MetricsPartitions boolean     `split_words:"true" desc:"also show metrics for each partition"`
	TopicAdmin        boolean     `split_words:"true" desc:"whether topics may be created and deleted over the socket"`
	SidecarMode       sidecarMode `split_words:"true" desc:"native: the app is gone when SIGTERM comes, so leave at once; container: keep serving until the app is done"`
	DrainTimeout      duration    `split_words:"true" desc:"the end of a drain, in container mode"`
	LogLevel          logLevel    `split_words:"true" desc:"debug, info, warn or error"`
	LogFormat         logFormat   `split_words:"true" desc:"json or text"`
}

// defaultMaxBytes is the memory budget where no container sets a limit.
const defaultMaxBytes = 64 << 20

func defaults() config {
	return config{
		Partitions:        1,
		Capacity:          core.DefaultCapacity,
		AckTimeout:        duration(core.DefaultAckTimeout),
		MaxMessageBytes:   core.DefaultMessageBytes,
		Socket:            "/run/podmq/podmq.sock",
		SocketMode:        0o666,
		MetricsAddr:       ":9789",
		MetricsPartitions: true,
		TopicAdmin:        true,
		SidecarMode:       native,
		DrainTimeout:      duration(25 * time.Second),
		LogLevel:          logLevel(slog.LevelInfo),
		LogFormat:         "json",
	}
}

// A variable is one setting as a person sees it.
type variable struct{ name, meaning, value string }

// loadConfig reads the environment. memoryLimit is the container's, 0 for none.
// It returns every fault that it found, not only the first; each is one line.
func loadConfig(memoryLimit int64) (config, []error) {
	c := defaults()
	var faults []error
	fields := reflect.ValueOf(&c).Elem()
	for i, v := range c.variables() {
		if os.Getenv(v.name) == "" {
			continue
		}
		// envconfig stops at the first fault, so it gets one field at a time.
		one := reflect.New(reflect.StructOf([]reflect.StructField{fields.Type().Field(i)}))
		err := envconfig.Process(prefix, one.Interface())
		faults = append(faults, explain(v.name, err)...)
		switch one.Elem().Field(0).Interface().(type) {
		case topicList, groupList: // its good entries are checked with the other settings
		default:
			if err != nil {
				continue
			}
		}
		fields.Field(i).Set(one.Elem().Field(0))
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = defaultMaxBytes
		if memoryLimit > 0 {
			c.MaxBytes = size(memoryLimit / 2)
		}
	}
	return c, append(faults, c.check()...)
}

// explain says of which variable a fault is, once for each fault of a list.
func explain(name string, err error) []error {
	if err == nil {
		return nil
	}
	var parse *envconfig.ParseError
	if errors.As(err, &parse) {
		err = parse.Err
	}
	entries, ok := joined(err)
	if !ok {
		return []error{fmt.Errorf("%s: %s", name, detail(err))}
	}
	var faults []error
	for _, entry := range entries {
		faults = append(faults, fmt.Errorf("%s, %s", name, detail(entry)))
	}
	return faults
}

// joined is what errors.Join made one error of.
func joined(err error) ([]error, bool) {
	var all interface{ Unwrap() []error }
	if !errors.As(err, &all) {
		return nil, false
	}
	return all.Unwrap(), true
}

// detail is the sentence of an error, without the code that is for programs.
func detail(err error) string {
	var e *core.Error
	if errors.As(err, &e) {
		return e.Detail
	}
	return err.Error()
}

// topicSettings are what a topic gets that does not say.
func (c *config) topicSettings() core.TopicSettings {
	return core.TopicSettings{
		Partitions: int(c.Partitions),
		Capacity:   int(c.Capacity),
		AckTimeout: time.Duration(c.AckTimeout),
	}
}

// variables returns the settings in the order of the struct, with the values
// that c has.
func (c *config) variables() []variable {
	var keys bytes.Buffer
	// envconfig alone knows how it makes a name of a field's.
	const eachKey = "{{range .}}{{usage_key .}}\n{{end}}"
	if err := envconfig.Usagef(prefix, c, &keys, eachKey); err != nil {
		panic(fmt.Sprintf("cannot list the settings: %v", err))
	}
	fields := reflect.ValueOf(c).Elem()
	var all []variable
	for i, name := range strings.Fields(keys.String()) {
		tag := fields.Type().Field(i).Tag
		v := variable{name: name, meaning: tag.Get("desc"), value: fmt.Sprint(fields.Field(i).Interface())}
		if v.value == "" {
			v.value = tag.Get("absent")
		}
		all = append(all, v)
	}
	return all
}

// LogValue implements slog.LogValuer: the settings in force, by variable.
func (c *config) LogValue() slog.Value {
	var attrs []slog.Attr
	for _, v := range c.variables() {
		attrs = append(attrs, slog.String(v.name, v.value))
	}
	return slog.GroupValue(attrs...)
}
