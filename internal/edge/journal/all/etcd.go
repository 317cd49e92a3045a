//go:build etcd

package all

import (
	"context"

	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/etcd"
)

// openEtcd opens a journal in etcd, and says which one it is.
func openEtcd(ctx context.Context, spec, holder string, depose bool, notice func(string)) (j journal.Journal, is string, err error) {
	e, err := etcd.Parse(spec)
	if err != nil {
		return nil, "", err
	}
	e.Holder, e.Depose, e.Notice = holder, depose, notice
	opened, err := etcd.Open(ctx, e)
	if err != nil {
		return nil, "", err
	}
	return opened, opened.Identity(), nil
}
