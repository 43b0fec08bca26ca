package stream

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// G4, G6, G8, G9, G12, G18 and G22, as far as one partition decides them.
func TestPartitionDoesWhatItsSimpleTwinDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { newMachine(t).live(t) })
}

func FuzzPartition(f *testing.F) {
	for seed := range uint64(4) {
		choices := make([]byte, 16<<10)
		for i, from := 0, rand.New(rand.NewPCG(seed, 0)); i < len(choices); i++ {
			choices[i] = byte(from.Uint32())
		}
		f.Add(choices)
	}
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { newMachine(t).live(t) }))
}

// What a journal must rely on: a partition is what happened to it.
func TestPartitionIsTheSameWhenItsChangesAreAppliedAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		m.live(t)
		again := m.replayed()
		if err := check(again); err != nil {
			t.Fatal(err)
		}
		if got, want := snapshot(again, m.now), snapshot(m.part, m.now); got != want {
			t.Fatalf("applied again:\n%s\nwant\n%s", got, want)
		}
	})
}
