package cli

import (
	"context"
	"io"
	"os"

	histories "sluice.dev/sluice/internal/lab/history/all"
)

// watchReading are files that say while they are read, one behind the other, how many MB of all of them are, and that end when ctx does: a
// log of a year takes a minute. Of a pipe nobody knows how long it is.
func watchReading(ctx context.Context, files []histories.File, show func(done, total int)) (out []histories.File) {
	p := &readProgress{ctx: ctx, show: show, shown: -1}
	for _, f := range files {
		out = append(out, histories.File{Name: f.Name, Open: func() (io.ReadCloser, error) {
			r, err := f.Open()
			if err != nil {
				return nil, err
			}
			return &watchedFile{r, p}, nil
		}})
		if info, err := os.Stat(f.Name); err == nil && info.Mode().IsRegular() {
			p.total += info.Size()
		}
	}
	return out
}

// readProgress counts in bytes. shown is in MB.
type readProgress struct {
	ctx                context.Context
	done, total, shown int64
	show               func(done, total int)
}

type watchedFile struct {
	io.ReadCloser
	progress *readProgress
}

func (f *watchedFile) Read(b []byte) (int, error) {
	p := f.progress
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := f.ReadCloser.Read(b)
	p.done += int64(n)
	if mb := p.done / 1e6; mb > p.shown {
		p.shown = mb
		p.show(int(mb), int(max(p.total, p.done)/1e6))
	}
	return n, err
}
