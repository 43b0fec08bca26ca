package transport

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// heads are some that are alike and some that only seem so.
func heads() (all []string) {
	lines := []string{
		"POST /v1/topics/t/messages HTTP/1.1\r\n", "POST /v1/topics/u/messages?key=a HTTP/1.1\r\n", "GET /v1/topics HTTP/1.1\r\n",
		"POST /v1/topics/t/messages HTTP/1.0\r\n", "POST /v1/topics/t/messages HTTP/1.1\n", "\r\nPOST /v1 HTTP/1.1\r\n",
		"POST http://p/v1/topics HTTP/1.1\r\n", "POST * HTTP/1.1\r\n", "POST / HTTP/1.1\r\n", "POST  HTTP/1.1\r\n", "POST HTTP/1.1\r\n",
		"POST /a /b HTTP/1.1\r\n", "POST  /a HTTP/1.1\r\n", "POST /a  HTTP/1.1\r\n", "POST /a\x01 HTTP/1.1\r\n", "POST /a\x7f HTTP/1.1\r\n",
		"POST /a\r HTTP/1.1\r\n", "POST /\xff HTTP/1.1\r\n", "post /a HTTP/1.1\r\n", "POSTS /a HTTP/1.1\r\n", "POST /a HTTP/1.1 \r\n",
		"POST\t/a HTTP/1.1\r\n", "POST /a HTTP/1.1\r\r\n", "HEAD /a HTTP/1.1\r\n",
	}
	headers := []string{
		"Host: p\r\n", "Host: q\r\n", "host: p\r\n", "Host: p\n", "Host: p\r\nContent-Length: 3\r\n", "Host: p\r\nContent-Length: 4\r\n",
		"Host: p\r\nContent-Length: 3\r\nPodmq-Meta-A: 1\r\n", "Host: p\r\nPodmq-Meta-A: 1\r\n 2\r\n", "Host: p\r\nPodmq-Meta-A: 1\r\n",
		"Host: p\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n", "Host: p\r\nConnection: close\r\n", "Host: p\r\nHost: p\r\n",
		"Host: p\r\nContent-Length: 3\r\nContent-Length: 3\r\n", "Content-Length: 3\r\n", "",
	}
	for _, line := range lines {
		for _, h := range headers {
			all = append(all, line+h+"\r\n", line+h+"\n")
		}
	}
	return all
}

// describe is all that is used of a head, and what follows it.
func describe(h *fasthttp.RequestHeader, in io.Reader) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s 1.1: %v, close: %v, length: %d", h.Method(), h.RequestURI(), h.IsHTTP11(), h.ConnectionClose(), h.ContentLength())
	for name, value := range h.All() {
		fmt.Fprintf(&b, "\n%s: %q", name, value)
	}
	rest, _ := io.ReadAll(in)
	return fmt.Sprintf("%s\n%q", b.String(), rest)
}

func TestAHeadThatIsTheSameIsReadAsTheParserReadsIt(t *testing.T) {
	t.Parallel()
	const body = "abcd\r\n"
	same := 0
	all := heads()
	for _, first := range all {
		for _, second := range all {
			in := bufio.NewReader(strings.NewReader(first + second + body))
			k := &call{conn: &conn{in: in}}
			if k.header.Read(in) != nil {
				break
			}
			if !k.readSameHead() {
				continue
			}
			same++
			got := describe(&k.header, in)
			in = bufio.NewReader(strings.NewReader(second + body))
			var parsed fasthttp.RequestHeader
			if err := parsed.Read(in); err != nil {
				t.Fatalf("after %q: %q was taken, the parser says: %v", first, second, err)
			}
			if want := describe(&parsed, in); got != want {
				t.Fatalf("after %q: %q was read as\n%s\nwant\n%s", first, second, got, want)
			}
		}
	}
	if same < 100 {
		t.Errorf("only %d of the heads were the same as the one before", same)
	}
}

func TestARequestIsAnsweredTheSameAfterAnyOther(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("partitions=2")
	r.want(201, "PUT /v1/topics/u", nil)
	statusOf := func(w *wire, what string) (int, string) {
		w.send(request(what, ""))
		method, _, _ := strings.Cut(what, " ")
		a, err := http.ReadResponse(w.in, &http.Request{Method: method})
		r.must(err)
		body, err := io.ReadAll(a.Body)
		r.must(err)
		return a.StatusCode, string(body)
	}
	all := []string{
		"GET /v1/topics/t", "GET /v1/topics/u", "HEAD /v1/topics/t", "PATCH /v1/topics/t", "GET /v1/topics/t?watt=1", "GET /v1/topics/%74",
		"GET /v1/topics/t/groups/g", "GET /v1/topics/u/groups/g", "GET /v1/topics/t/groups", "GET /nowhere", "GET /v1/topics/%zz", "GET /v1/topics",
	}
	for _, before := range all {
		for _, what := range all {
			w, fresh := r.wire(), r.wire()
			statusOf(w, before)
			status, body := statusOf(w, what)
			wantStatus, wantBody := statusOf(fresh, what)
			if status != wantStatus || body != wantBody {
				t.Errorf("%s after %s: %d %s, want %d %s", what, before, status, body, wantStatus, wantBody)
			}
			_, _ = w.Close(), fresh.Close()
		}
	}
}

func TestTheTrailerOfARequestIsNotOfTheNext(t *testing.T) {
	t.Parallel()
	in := bufio.NewReader(strings.NewReader(strings.Repeat("POST / HTTP/1.1\r\nHost: p\r\nTransfer-Encoding: chunked\r\nTrailer: Podmq-Meta-A\r\n\r\n", 2)))
	k := &call{conn: &conn{in: in}}
	if err := k.header.Read(in); err != nil {
		t.Fatal(err)
	}
	if err := k.header.ReadTrailer(bufio.NewReader(strings.NewReader("Podmq-Meta-A: 1\r\n\r\n"))); err != nil {
		t.Fatal(err)
	}
	if !k.readSameHead() {
		if err := k.header.Read(in); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range k.header.All() {
		if string(name) == "Podmq-Meta-A" {
			t.Errorf("it has %s: %s", name, value)
		}
	}
	if v := k.header.Peek("Podmq-Meta-A"); len(v) > 0 {
		t.Errorf("it has %q", v)
	}
}
