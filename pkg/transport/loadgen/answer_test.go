package loadgen

import (
	"strings"
	"testing"
)

func TestAnAnswerIsReadOnlyWhenItIsComplete(t *testing.T) {
	t.Parallel()
	const whole = "HTTP/1.1 201 Created\r\nX-Content-Length: 1\r\nContent-Length: 5\r\nPodmq-Receipt: abc\r\n\r\nhello"
	for n := range len(whole) {
		if _, ok, err := readAnswer([]byte(whole[:n])); ok || err != nil {
			t.Fatalf("%d of %d bytes: %v, %v", n, len(whole), ok, err)
		}
	}
	a, ok, err := readAnswer([]byte(whole + "HTTP/1.1 200"))
	if err != nil || !ok || a.status != 201 || string(a.body) != "hello" || a.size != len(whole) {
		t.Fatalf("%+v, %v, %v", a, ok, err)
	}
	if v, given := a.header("Podmq-Receipt"); !given || string(v) != "abc" {
		t.Errorf("receipt %q, %v", v, given)
	}
	if v, given := a.header("Receipt"); given {
		t.Errorf("a part of a name was taken for a name: %q", v)
	}
}

func TestAnAnswerThatIsNoneIsAnError(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"+OK\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"} {
		if _, _, err := readAnswer([]byte(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
	if a, ok, err := readAnswer([]byte("HTTP/1.1 204 No Content\r\n\r\n")); err != nil || !ok || len(a.body) != 0 {
		t.Errorf("204: %+v, %v, %v", a, ok, err)
	}
}

func TestFramesThatAreCutShortAreRefused(t *testing.T) {
	t.Parallel()
	payload := strings.Repeat("0", MinPayload)
	frame := string(make([]byte, deliveryFixed)) + "\x00\x00\x00\x24" + "\xff\xff" + "\x00\x00" + payload
	read := func(body string) error {
		c := NewConsumer("t", "g", "m", NewSink(NewTally(0, 1, 0), nil), 1, Frames)
		return c.readFrames(0, []byte(body))
	}
	if err := read(frame + frame); err != nil {
		t.Fatal(err)
	}
	for n := 1; n < len(frame); n++ {
		if read(frame+frame[:n]) == nil {
			t.Fatalf("a frame of %d bytes of %d: no error", n, len(frame))
		}
	}
}
