//go:build !etcd

package all

import (
	"context"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal"
)

// openEtcd says how to get what this build is without.
func openEtcd(context.Context, string, string, bool, func(string)) (j journal.Journal, is string, err error) {
	return nil, "", errkind.Errorf(errkind.Unsupported, "this build has no journals in etcd: build one that has with `make build TAGS=etcd`, or leave "+
		"journal out of the daemon's file")
}
