package local_test

import (
	"os"
	"testing"

	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/files/filestest"
	"sluice.dev/sluice/internal/edge/store/local"
	"sluice.dev/sluice/internal/edge/store/storetest"
)

func TestMain(m *testing.M) {
	storetest.Child(func(dir string) (store.Store, error) { return local.Open(dir) })
	os.Exit(m.Run())
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t testing.TB) *storetest.Place { return filestest.Place(t, local.Open) })
}

func BenchmarkStore(b *testing.B) {
	storetest.Bench(b, func(t testing.TB) *storetest.Place { return filestest.Place(t, local.Open) })
}
