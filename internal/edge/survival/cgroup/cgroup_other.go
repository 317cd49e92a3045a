//go:build !linux

package cgroup

import (
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/survival"
)

// Name of the kind.
const Name = "cgroup"

// Open says that there is none here.
func Open(string) (survival.Survival, error) {
	return nil, errkind.Errorf(errkind.Unsupported, "survival: memory is watched on Linux alone")
}
