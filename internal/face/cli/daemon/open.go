package daemon

import "context"

// Open puts the parts of a daemon together for one machine: one gate, the zones and nodes of its file (one each unless it says more), a
// local journal, and subjobs as processes; or, of a machine that joins a cluster, its node alone. It is what cmd/sluice passes as
// Deps.Open.
func Open(ctx context.Context, o Options) (*Daemon, error) {
	if o.Join {
		return openMember(ctx, o)
	}
	return openWhole(ctx, o)
}
