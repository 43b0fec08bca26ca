package core_test

import (
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

var groupDefaults = core.GroupSettings{
	Type: core.Ordered, Strategy: core.Sticky,
	SessionTimeout: core.DefaultSessionTimeout, MaxLease: core.DefaultMaxLease,
}

func TestGroupSettingsFillWhatIsNotGiven(t *testing.T) {
	if got, err := (core.GroupSpec{}).Settings(); err != nil || got != groupDefaults {
		t.Errorf("nothing given: %+v, %v, want %+v", got, err, groupDefaults)
	}
	spec := core.GroupSpec{
		Type: core.Some(core.Queue), Start: core.Some(core.Earliest), Strategy: core.Some(core.RoundRobin),
		SessionTimeout: core.Some(time.Minute), MaxLease: core.Some(2 * time.Minute), Expires: core.Some(time.Second),
	}
	want := core.GroupSettings{Type: core.Queue, Strategy: core.RoundRobin, SessionTimeout: time.Minute, MaxLease: 2 * time.Minute, Expires: time.Second}
	if got, err := spec.Settings(); err != nil || got != want {
		t.Errorf("all given: %+v, %v, want %+v", got, err, want)
	}
}

func TestGroupSettingsThatAreNoneAreRefusedByName(t *testing.T) {
	tests := []struct {
		parameter string
		spec      core.GroupSpec
	}{
		{"type", core.GroupSpec{Type: core.Some(core.GroupType("fifo"))}},
		{"type", core.GroupSpec{Type: core.Some(core.GroupType(""))}},
		{"strategy", core.GroupSpec{Strategy: core.Some(core.Strategy("range"))}},
		{"start", core.GroupSpec{Start: core.Some(core.Start("middle"))}},
		{"session-timeout", core.GroupSpec{SessionTimeout: core.Some(time.Duration(0))}},
		{"session-timeout", core.GroupSpec{SessionTimeout: core.Some(core.MaxDuration + 1)}},
		{"max-lease", core.GroupSpec{MaxLease: core.Some(-time.Second)}},
		{"expires", core.GroupSpec{Expires: core.Some(-time.Second)}},
		{"expires", core.GroupSpec{Expires: core.Some(time.Microsecond)}},
	}
	for _, tt := range tests {
		if _, err := tt.spec.Settings(); err == nil {
			t.Errorf("%s: %+v is taken", tt.parameter, tt.spec)
		} else {
			wantRefused(t, err, core.CodeInvalidRequest, tt.parameter)
		}
	}
}

func TestGroupSpecDiffersNeverInWhereItStarted(t *testing.T) {
	for _, spec := range []core.GroupSpec{{}, {Start: core.Some(core.Earliest)}, {Type: core.Some(core.Ordered)}} {
		if what := spec.Differs(groupDefaults); what != "" {
			t.Errorf("%+v differs from the defaults in %s", spec, what)
		}
	}
	for want, spec := range map[string]core.GroupSpec{
		"type":            {Type: core.Some(core.Queue)},
		"strategy":        {Strategy: core.Some(core.RoundRobin)},
		"session-timeout": {SessionTimeout: core.Some(time.Second)},
		"max-lease":       {MaxLease: core.Some(time.Second)},
		"expires":         {Expires: core.Some(time.Second)},
	} {
		if what := spec.Differs(groupDefaults); what != want {
			t.Errorf("%+v differs in %q, want %q", spec, what, want)
		}
	}
}
