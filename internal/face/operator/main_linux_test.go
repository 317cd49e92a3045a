//go:build kubernetes

package operator_test

import (
	"os"
	"testing"

	"sluice.dev/sluice/internal/edge/executor/kubernetes/podtest"
	"sluice.dev/sluice/test/kube/plane"
)

func TestMain(m *testing.M) {
	code := plane.Run(m)
	podtest.Clean()
	os.Exit(code)
}
