package transport

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/podmq/podmq/pkg/core"
)

// publishBatch stores the messages of the body, all of them or none.
func (k *call) publishBatch() (r response, err error) {
	p := &k.publishing
	p.req.Partition = core.AnyPartition
	if p.req.Wait, err = k.query.wait(0); err != nil {
		return r, err
	}
	decode, err := decoderOf(k.header.ContentType())
	if err != nil {
		return r, err
	}
	if err := k.readBody(core.MaxBatchBytes, p.req.Wait); err != nil {
		return r, err
	}
	p.req.Messages, err = decode(k.body, k.server.maxMessage, p.req.Messages[:0])
	if err != nil {
		return r, err
	}
	if len(p.req.Messages) == 0 {
		return r, core.Errorf(core.CodeInvalidRequest, "cannot publish an empty batch: give one message at least")
	}
	k.releaseBody()
	if err := k.publish(); err != nil {
		return r, err
	}
	b := append(k.newText(), `{"messages":[`...)
	for i, place := range p.placed {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendPlace(b, place)
	}
	return k.json(statusCreated, append(b, "]}"...)), nil
}

// A decoder appends a body's messages. It copies what it keeps.
type decoder func(body []byte, maxMessage int, to []core.Message) ([]core.Message, error)

func decoderOf(contentType []byte) (decoder, error) {
	media, _, _ := bytes.Cut(contentType, []byte{';'})
	media = bytes.TrimSpace(media)
	switch {
	case equalFold(media, framesType):
		return readFrames, nil
	case equalFold(media, jsonType):
		return readJSON, nil
	case equalFold(media, ndjsonType):
		return readNDJSON, nil
	}
	given := "a batch without a Content-Type"
	if len(media) > 0 {
		given = fmt.Sprintf("a batch of %.60q", media)
	}
	return nil, core.Errorf(core.CodeUnsupportedMedia, "cannot read %s: send %s, %s or %s", given, jsonType, ndjsonType, framesType).
		With("supported", []string{jsonType, ndjsonType, framesType})
}

func addMessage(to []core.Message, m core.Message) ([]core.Message, error) {
	if len(to) == core.MaxBatchMessages {
		return to, core.Errorf(core.CodeTooLarge, "cannot take more than %d messages in a batch", core.MaxBatchMessages).
			With("max_messages", core.MaxBatchMessages)
	}
	return append(to, m), nil
}

// inMessage says which message of a batch an error is about.
func inMessage(i int, err error) error { return at("message", i, err) }

// inLine does it by the number of the line, from 1.
func inLine(n int, err error) error { return at("line", n, err) }

func at(what string, n int, err error) error {
	var e *core.Error
	if !errors.As(err, &e) {
		return err
	}
	e.Detail = fmt.Sprintf("%s (%s %d; nothing was stored)", e.Detail, what, n)
	return e.With(what, n)
}
