package transport

import (
	"strings"
	"testing"

	"github.com/podmq/podmq/pkg/core"
)

// BenchmarkReadBatch is per batch of 100 messages of 256 B.
func BenchmarkReadBatch(b *testing.B) {
	line := `{"key":"user-7","payload":"` + strings.Repeat("payload ", 32) + `","headers":{"trace":"1"}}`
	m, err := core.NewMessage(&core.Content{Key: []byte("user-7"), HasKey: true, Payload: []byte(strings.Repeat("payload ", 32)), Headers: []core.Header{{Name: "trace", Value: "1"}}}, 1<<20)
	if err != nil {
		b.Fatal(err)
	}
	for name, c := range map[string]struct {
		decode decoder
		body   string
	}{
		"JSON":   {readJSON, `{"messages":[` + strings.Repeat(line+",", 99) + line + "]}"},
		"NDJSON": {readNDJSON, strings.Repeat(line+"\n", 100)},
		"frames": {readFrames, strings.Repeat(string(m.Block()), 100)},
	} {
		b.Run(name, func(b *testing.B) {
			body := []byte(c.body)
			var to []core.Message
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if to, err = c.decode(body, 1<<20, to[:0]); err != nil || len(to) != 100 {
					b.Fatal(len(to), err)
				}
			}
		})
	}
}

// BenchmarkWriteBatch is per answer with 100 messages of 256 B.
func BenchmarkWriteBatch(b *testing.B) {
	m, err := core.NewMessage(&core.Content{Key: []byte("user-7"), HasKey: true, Payload: []byte(strings.Repeat("payload ", 32)), ContentType: "text/plain"}, 1<<20)
	if err != nil {
		b.Fatal(err)
	}
	batch := core.Batch{Deliveries: make([]core.Delivery, 100), Receipt: core.Receipt{Ranges: []core.Range{{Partition: 0, From: 0, To: 100}}}}
	for i := range batch.Deliveries {
		batch.Deliveries[i] = core.Delivery{Message: m.Published(int64(1e18) + int64(i)*1e6), Offset: int64(i), Attempt: 1}
	}
	inJSON := func(e *batchEncoder, b []byte) ([]byte, error) { return e.append(b, func(int64) error { return nil }) }
	for name, write := range map[string]func(*batchEncoder, []byte) ([]byte, error){"JSON": inJSON, "frames": (*batchEncoder).frames} {
		b.Run(name, func(b *testing.B) {
			var to []byte
			b.ReportAllocs()
			for b.Loop() {
				e := batchEncoder{batch: &batch}
				if to, err = write(&e, to[:0]); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(len(to)))
		})
	}
}
