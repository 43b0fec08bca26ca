package main

import (
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/podmq/podmq/pkg/transport"
	"github.com/podmq/podmq/pkg/transport/units"
)

// The types of settings. Each reads its text with Decode, which envconfig calls,
// and writes it back with String.

// count is a whole number.
type count int

// Decode implements envconfig.Decoder.
func (c *count) Decode(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("cannot use %.40q: it is a whole number", text)
	}
	*c = count(n)
	return nil
}

// duration is a time with its unit.
type duration time.Duration

// Decode implements envconfig.Decoder.
func (d *duration) Decode(text string) error {
	v, err := units.ParseDuration(text)
	*d = duration(v)
	return err
}

func (d duration) String() string { return time.Duration(d).String() }

// size is a number of bytes with its unit; 0 is absent.
type size int64

// Decode implements envconfig.Decoder.
func (s *size) Decode(text string) error {
	v, err := units.ParseSize(text)
	if err == nil && v == 0 {
		return fmt.Errorf("cannot use %q: give at least 1B", text)
	}
	*s = size(v)
	return err
}

func (s size) String() string {
	if s == 0 {
		return ""
	}
	return units.FormatSize(int64(s))
}

// filePath is where a file is.
type filePath string

// Decode implements envconfig.Decoder. What is at the path, and whether it can be
// bound, the socket's own package says.
func (p *filePath) Decode(text string) error {
	if n := len(text); n > transport.MaxSocketPath {
		return fmt.Errorf("cannot bind a socket at %s: its path has %d bytes, and the most is %d", text, n, transport.MaxSocketPath)
	}
	*p = filePath(text)
	return nil
}

// fileMode is permissions in octal.
type fileMode fs.FileMode

// Decode implements envconfig.Decoder.
func (m *fileMode) Decode(text string) error {
	v, err := strconv.ParseUint(text, 8, 32)
	if err != nil || v > 0o777 {
		return fmt.Errorf("cannot use %.40q: it is an octal number up to 0777, such as 0666 or 0660", text)
	}
	if v&0o600 != 0o600 {
		return fmt.Errorf("cannot use %.40q: the broker's own user needs to read and write, 0600 at least", text)
	}
	*m = fileMode(v)
	return nil
}

func (m fileMode) String() string { return fmt.Sprintf("%04o", uint32(m)) }

// address is where to listen: host:port, or :port for every address.
type address string

// Decode implements envconfig.Decoder.
func (a *address) Decode(text string) error {
	if _, _, err := splitAddress(text); err != nil {
		return err
	}
	*a = address(text)
	return nil
}

// loopback is an address that only this pod can reach.
type loopback string

// Decode implements envconfig.Decoder.
func (l *loopback) Decode(text string) error {
	host, _, err := splitAddress(text)
	if err != nil {
		return err
	}
	if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return fmt.Errorf("cannot use %.60q: the API has no passwords, so it is served on loopback only, such as 127.0.0.1:8080", text)
	}
	*l = loopback(text)
	return nil
}

func splitAddress(text string) (host string, port int, err error) {
	host, digits, err := net.SplitHostPort(text)
	if err == nil {
		port, err = strconv.Atoi(digits)
	}
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("cannot use %.60q: it is host:port or :port, with a port up to 65535", text)
	}
	return host, port, nil
}

// boolean is true or false, and none of the other ways to say so.
type boolean bool

// Decode implements envconfig.Decoder.
func (b *boolean) Decode(text string) error {
	if text != "true" && text != "false" {
		return fmt.Errorf("cannot use %.40q: it is true or false", text)
	}
	*b = text == "true"
	return nil
}

// sidecarMode is what SIGTERM means.
type sidecarMode string

const (
	// native: the kubelet ends native sidecars after the app's containers, so
	// nobody is left to serve.
	native sidecarMode = "native"
	// container: all containers of the pod get SIGTERM at once, and the app may
	// still publish, poll and ack.
	container sidecarMode = "container"
)

// Decode implements envconfig.Decoder.
func (m *sidecarMode) Decode(text string) error {
	switch v := sidecarMode(text); v {
	case native, container:
		*m = v
		return nil
	}
	return fmt.Errorf("cannot use %.40q: it is %s or %s", text, native, container)
}

// logLevel is the least that is logged.
type logLevel slog.Level

// Decode implements envconfig.Decoder.
func (l *logLevel) Decode(text string) error {
	for _, v := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		if text == logLevel(v).String() {
			*l = logLevel(v)
			return nil
		}
	}
	return fmt.Errorf("cannot use %.40q: it is debug, info, warn or error", text)
}

func (l logLevel) String() string {
	switch slog.Level(l) {
	case slog.LevelDebug:
		return "debug"
	case slog.LevelWarn:
		return "warn"
	case slog.LevelError:
		return "error"
	}
	return "info"
}

// logFormat is how a line of log looks.
type logFormat string

// Decode implements envconfig.Decoder.
func (f *logFormat) Decode(text string) error {
	if text != "json" && text != "text" {
		return fmt.Errorf("cannot use %.40q: it is json or text", text)
	}
	*f = logFormat(text)
	return nil
}
