//go:build kubernetes

package soak

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/tree"
)

// outputs are the committed outputs in the store, of all jobs and all of their lives.
func outputs(ctx context.Context, where store.Store, scratch string) (list []output, err error) {
	err = where.Names(ctx, "outputs", func(n store.Named) error {
		// outputs/OWNER/NAMESPACE.JOB/LIFE/FROM-TO.TOKEN
		o := output{name: n.Name}
		words := strings.Split(n.Name, "/")
		span, token, _ := strings.Cut(words[len(words)-1], ".")
		from, to, _ := strings.Cut(span, "-")
		o.token, o.from, o.to = token, number(from), number(to)
		if len(words) == 5 {
			_, o.job, _ = strings.Cut(words[2], ".")
		}
		if _, err := job.ParseToken(token); err != nil {
			o.job = ""
		}
		r, err := where.Open(ctx, n.Refs["output"])
		if err != nil {
			return err
		}
		at, err := os.MkdirTemp(scratch, "output-")
		if err != nil {
			return err
		}
		if _, _, err = tree.Restore(r, filepath.Join(at, "tree"), tree.Limits{Bytes: 1 << 20, Entries: 100}); err != nil {
			return err
		}
		text, err := os.ReadFile(filepath.Join(at, "tree", "units"))
		o.text = string(text)
		list = append(list, o)
		return err
	})
	return list, err
}
