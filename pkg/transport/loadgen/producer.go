package loadgen

import (
	"encoding/binary"
	"fmt"
	"strconv"
)

const framesType = "application/vnd.podmq.frames"

// A Format is how messages travel in batches.
type Format string

// The formats of batches.
const (
	Frames Format = "frames"
	JSON   Format = "json"
)

// A Producer is the session of a PodMQ producer: one request at a time, each of
// one message to …/messages, or of a batch to …/batch.
type Producer struct {
	source *Source
	json   bool
	head   []byte
}

// NewProducer makes a producer to a topic. Format matters only in batches.
func NewProducer(topic string, source *Source, format Format) *Producer {
	p := &Producer{source: source, json: format == JSON}
	kind, line, length := "messages", "", source.Size
	if source.Batch > 1 {
		kind, line = "batch", "Content-Type: "+framesType+"\r\n"
		length = source.Batch * (frameFixed + source.Size)
		if p.json {
			line = "Content-Type: application/json\r\n"
			length = len(jsonStart) + len(jsonEnd) + source.Batch*(len(jsonBefore)+source.Size+len(jsonAfter)+1) - 1
		}
	}
	p.head = fmt.Appendf(nil, "POST /v1/topics/%s/%s HTTP/1.1\r\nHost: podmq\r\n%sContent-Length: %s\r\n\r\n", topic, kind, line, strconv.Itoa(length))
	return p
}

const (
	frameFixed = 8 // size u32, length of the key u16, of the attributes u16
	noKey      = 0xFFFF

	jsonStart, jsonEnd    = `{"messages":[`, `]}`
	jsonBefore, jsonAfter = `{"payload":"`, `"}`
)

// Say implements Session.
func (p *Producer) Say(now int64, out []byte) ([]byte, int64) {
	yes, again := p.source.Next(now)
	if !yes {
		return out, again
	}
	out = append(out, p.head...)
	switch {
	case p.source.Batch == 1:
		out = p.source.AppendPayload(out)
	case p.json:
		out = append(out, jsonStart...)
		for i := range p.source.Batch {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, jsonBefore...)
			out = p.source.AppendPayload(out)
			out = append(out, jsonAfter...)
		}
		out = append(out, jsonEnd...)
	default:
		for range p.source.Batch {
			out = binary.BigEndian.AppendUint32(out, uint32(frameFixed-4+p.source.Size))
			out = binary.BigEndian.AppendUint16(out, noKey)
			out = binary.BigEndian.AppendUint16(out, 0)
			out = p.source.AppendPayload(out)
		}
	}
	p.source.Sent()
	return out, Never
}

// Hear implements Session.
func (p *Producer) Hear(now int64, in []byte) (used int, err error) {
	a, ok, err := readAnswer(in)
	switch {
	case err != nil || !ok:
		return 0, err
	case a.status != 201:
		return 0, a.refusal("a publish")
	}
	p.source.Stored(now)
	return a.size, nil
}
