//go:build !etcd || !linux

package soak

import "testing"

// tags of the programs.
const tags = ""

// journal is where daemons have theirs: in their data directories.
const journal = ""

func elsewhere(*testing.T) {}
