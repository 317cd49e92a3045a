package protocol

import "testing"

// TestABodyIsGivenOutOnce: whoever has one may keep it, whatever is made and reset after it.
func TestABodyIsGivenOutOnce(t *testing.T) {
	var o Out
	seen := map[*Grant]bool{}
	for i := range 300 {
		g := o.Grants.Keep(Grant{Ask: uint64(i)})
		if seen[g] {
			t.Fatalf("grant %d is where another was", i)
		}
		seen[g] = true
		o.Reset()
	}
	asks := map[uint64]bool{}
	for g := range seen {
		asks[g.Ask] = true
	}
	if len(asks) != 300 {
		t.Errorf("300 grants were given out, %d are as they were", len(asks))
	}
	if n := testing.AllocsPerRun(640, func() { o.Grants.Keep(Grant{}); o.Reset() }); n > .1 {
		t.Errorf("a grant takes %.2f allocations", n)
	}
}
