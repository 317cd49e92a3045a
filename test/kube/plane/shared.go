//go:build kubernetes

package plane

import (
	"sync"
	"testing"
)

// shared is the one plane of a package's tests, where its TestMain is Run.
var shared struct { //nolint:gochecknoglobals // one for all tests of a package
	mu       sync.Mutex
	settings settings
	plane    *Plane
}

// Run is for a TestMain, as os.Exit(plane.Run(m, ...)): it runs the tests, among which Of starts one plane for all, and ends that plane.
func Run(m *testing.M, options ...Option) (code int) {
	shared.settings = chosen(options)
	code = m.Run()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.plane != nil {
		shared.plane.end(code != 0)
	}
	return code
}

// Of is the plane of this package's tests, which the first that asks starts. What a test leaves there the next one finds: let each use a
// Namespace and names of its own. Without the programs the test is skipped, as with Start.
func Of(t testing.TB) *Plane {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.settings.parts == nil {
		t.Fatal("plane.Of wants plane.Run in this package's TestMain")
	}
	if shared.plane == nil {
		p, err := start(assetsFor(t, shared.settings), shared.settings)
		if err != nil {
			t.Fatal(err)
		}
		shared.plane = p
	}
	return shared.plane
}
