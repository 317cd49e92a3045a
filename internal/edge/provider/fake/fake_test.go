package fake_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/edge/provider"
	"sluice.dev/sluice/internal/edge/provider/fake"
	"sluice.dev/sluice/internal/edge/provider/providertest"
)

func TestFake(t *testing.T) {
	providertest.Run(t, fake.Step, func(*testing.T) providertest.Host { return fake.New(time.Now) })
}

// Where a host shows gaps it is not blind, and what is over by its clock ends.
func TestGapsAndEnds(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	h := fake.New(func() time.Time { return now })
	p := h.Provider("aaaa1111")
	if look, err := p.Look(t.Context()); err != nil || !look.Blind {
		t.Errorf("%+v, %v: want it blind at first", look, err)
	}
	h.Show()
	if look, err := p.Look(t.Context()); err != nil || look.Blind {
		t.Errorf("%+v, %v: want it to show that there is no gap", look, err)
	}
	pilot := provider.Pilot{Name: "a", Length: fake.Step, Head: "head:1", Token: "t"}
	if err := p.Submit(t.Context(), pilot); err != nil {
		t.Fatal(err)
	}
	h.Start("a")
	for _, left := range []int{1, 0} {
		now = now.Add(fake.Step / 2)
		h.Step()
		if running := len(h.Pilots()); running != left {
			t.Errorf("%d run at %v, want %d", running, now, left)
		}
	}
}
