package tree_test

import (
	"os"
	"testing"

	"sluice.dev/sluice/internal/edge/survival"
	"sluice.dev/sluice/internal/edge/survival/survivaltest"
	"sluice.dev/sluice/internal/edge/survival/tree"
)

func TestMain(m *testing.M) {
	survivaltest.Main()
	os.Exit(m.Run())
}

func open(t *testing.T) survival.Survival {
	t.Helper()
	k, err := tree.Open("")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestConformance(t *testing.T) {
	(&survivaltest.Bench{Open: open}).Run(t)
}
