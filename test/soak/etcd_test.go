//go:build etcd && linux

package soak

import (
	"math/rand/v2"
	"testing"
	"time"

	"sluice.dev/sluice/internal/edge/journal/etcd/etcdtest"
)

// tags of the programs.
const tags = "etcd"

// journal is where daemons have theirs: a prefix of etcd's for each.
var journal string

// elsewhere starts the etcd that journals are in, and kills it now and then until the test is over: for less than the patience of a daemon.
func elsewhere(t *testing.T) {
	m := etcdtest.Start(t, 1, false)[0]
	journal = "etcd://" + m.Endpoint[len("http://"):]
	over, killed := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-over:
				killed <- n
				return
			case <-time.After(2*time.Second + rand.N(4*time.Second)):
			}
			m.Kill()
			m.Restart()
			n++
		}
	}()
	t.Cleanup(func() {
		close(over)
		t.Logf("etcd was killed %d times", <-killed)
	})
}
