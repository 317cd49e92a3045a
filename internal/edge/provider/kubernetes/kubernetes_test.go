//go:build kubernetes

package kubernetes

import (
	"testing"

	"sluice.dev/sluice/internal/edge/provider/providertest"
)

func TestProvider(t *testing.T) {
	providertest.Run(t, Step, func(t *testing.T) providertest.Host { return newHost(t) })
}
