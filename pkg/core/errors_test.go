package core_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/podmq/podmq/pkg/core"
)

func TestCodeOfFindsTheCodeThroughWrapping(t *testing.T) {
	full := core.Errorf(core.CodePartitionFull, "cannot publish to %q", "orders")
	tests := []struct {
		err  error
		want core.Code
	}{
		{nil, ""},
		{full, core.CodePartitionFull},
		{fmt.Errorf("publish: %w", full), core.CodePartitionFull},
		{errors.New("disk on fire"), core.CodeInternal},
	}
	for _, tt := range tests {
		if got := core.CodeOf(tt.err); got != tt.want {
			t.Errorf("CodeOf(%v) = %q, want %q", tt.err, got, tt.want)
		}
	}
}

func TestOnlyWhatCanPassByItselfIsRetryable(t *testing.T) {
	retryable := map[core.Code]bool{
		core.CodePartitionFull: true, core.CodeTopicFull: true, core.CodeMemoryFull: true,
		core.CodeDraining: true, core.CodeTooManyConnections: true, core.CodeStorageFull: true, core.CodeInternal: true,
		core.CodeInvalidRequest: false, core.CodeAdminDisabled: false, core.CodeUnknownTopic: false,
		core.CodeUnknownGroup: false, core.CodeUnknownPartition: false, core.CodeUnknownRoute: false,
		core.CodeMethodNotAllowed: false, core.CodeTopicExists: false, core.CodeGroupExists: false,
		core.CodeStaleReceipt: false, core.CodeNotInFlight: false, core.CodeNotOwner: false,
		core.CodeLeaseLimit: false, core.CodeTooLarge: false, core.CodeBatchExceedsCapacity: false,
		core.CodeUnsupportedMedia: false,
	}
	for code, want := range retryable {
		if got := core.Errorf(code, "cannot").Retryable(); got != want {
			t.Errorf("%s is retryable: %v, want %v", code, got, want)
		}
	}
}

func TestErrorKeepsItsContextInOrder(t *testing.T) {
	e := core.Errorf(core.CodeTooLarge, "cannot take %d bytes", 9).With("bytes", 9).With("max_bytes", 8)
	if e.Error() != "too_large: cannot take 9 bytes" {
		t.Errorf("the text is %q", e.Error())
	}
	if len(e.Fields) != 2 || e.Fields[0] != (core.Field{Name: "bytes", Value: 9}) || e.Fields[1] != (core.Field{Name: "max_bytes", Value: 8}) {
		t.Errorf("the context is %v, want bytes then max_bytes", e.Fields)
	}
}
