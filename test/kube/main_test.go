//go:build kubernetes

package kube

import (
	"os"
	"testing"

	"sluice.dev/sluice/test/kube/plane"
)

func TestMain(m *testing.M) {
	os.Exit(plane.Run(m, plane.With(plane.Scheduler, plane.Controllers, plane.Kwok)))
}
