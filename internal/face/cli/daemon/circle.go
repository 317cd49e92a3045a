package daemon

import (
	"sluice.dev/sluice/internal/edge/authority"
	"sluice.dev/sluice/internal/edge/clock"
	"sluice.dev/sluice/internal/edge/fabric/stream"
	"sluice.dev/sluice/internal/host"
)

// circle is what a head has of its own, for those parts of it that deal with machines.
type circle struct {
	authority *authority.Authority
	links     *stream.Head
	// host is nil until the head listens.
	host  *host.Host
	clock clock.Steady // which the daemon and its machines go by
	// address as machines are told.
	address string
}
