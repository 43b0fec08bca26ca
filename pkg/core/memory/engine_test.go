package memory_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/core/enginetest"
	"github.com/podmq/podmq/pkg/core/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEngine(t *testing.T) {
	enginetest.Run(t, func(_ testing.TB, o enginetest.Options) core.Engine {
		return memory.New(memory.Options{Topic: o.Topic, MaxBytes: o.MaxBytes})
	}, enginetest.Features{})
}
