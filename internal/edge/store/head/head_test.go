package head

import (
	"os"
	"testing"

	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/files/filestest"
	"sluice.dev/sluice/internal/edge/store/local"
	"sluice.dev/sluice/internal/edge/store/storetest"
)

func TestMain(m *testing.M) {
	storetest.Child(openSpec)
	os.Exit(m.Run())
}

func TestConformance(t *testing.T) {
	storetest.Run(t, place)
}

func BenchmarkStore(b *testing.B) {
	storetest.Bench(b, place)
}

// place is a head with a store in a directory. Faults and damage are that one's; machines reach it over TLS alone.
func place(t testing.TB) *storetest.Place {
	p := filestest.Place(t, local.Open)
	own, err := p.Open()
	if err != nil {
		t.Fatal(err)
	}
	a := newAuthority(t)
	h := serve(t, a, "", ServiceOptions{Store: own})
	p.Spec = a.at("machine", h.addr).spec(t)
	p.Open = func() (store.Store, error) { return openSpec(p.Spec) }
	// What was under way and not read when a process was killed: what a connection has room for.
	p.Part = 4 << 20
	return p
}
