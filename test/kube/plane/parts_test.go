//go:build kubernetes

package plane

import "testing"

// TestNoTwoPlanesHaveAPort: what is claimed once is nobody else's, though nobody listens there yet.
func TestNoTwoPlanesHaveAPort(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		a, err := address()
		if err != nil {
			t.Fatal(err)
		}
		if seen[a] || claim(port(a)) {
			t.Fatalf("%s is given out twice", a)
		}
		seen[a] = true
	}
}
