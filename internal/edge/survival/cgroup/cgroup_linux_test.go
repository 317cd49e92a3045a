package cgroup_test

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	shimtree "sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/survival"
	"sluice.dev/sluice/internal/edge/survival/cgroup"
	"sluice.dev/sluice/internal/edge/survival/survivaltest"
)

func TestMain(m *testing.M) {
	survivaltest.Main()
	os.Exit(m.Run())
}

var groups atomic.Int64

func TestConformance(t *testing.T) {
	base, memory, _ := shimtree.GroupBase()
	if base == "" {
		t.Skip("no control group of version 2 can be made here")
	}
	t.Logf("base %s, memory %v", base, memory)
	b := survivaltest.Bench{
		Open: func(t *testing.T) survival.Survival {
			t.Helper()
			k, err := cgroup.Open(base)
			if err != nil {
				t.Fatal(err)
			}
			return k
		},
		Group: func(t *testing.T) (string, *os.File) {
			t.Helper()
			g, err := shimtree.MakeGroup(shimtree.GroupIn(base, fmt.Sprintf("survivaltest-%d-%d", os.Getpid(), groups.Add(1))),
				shimtree.Bounds{})
			if err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(string(g))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = f.Close() })
			return string(g), f
		},
	}
	k := b.Open(t)
	t.Log(k.Capability())
	b.Swap = k.Capability().Level == survival.Full
	_ = k.Close()
	b.Run(t)
}
