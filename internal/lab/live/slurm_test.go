package live

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/lab/history"
	"sluice.dev/sluice/internal/lab/history/record"
	"sluice.dev/sluice/internal/lab/history/slurm"
)

// accounting is a Slurm whose sacct prints, as the real one does, the runs that had not ended by the time of its -S. Nothing else changes
// there, and the queue is empty.
type accounting struct {
	*testing.T
	now  time.Time
	rows []run
	// back is how far before now each look asked.
	back []time.Duration
}

func (a *accounting) answer(_ context.Context, name string, args ...string) ([]byte, error) {
	switch {
	case name == "squeue":
		return nil, nil
	case name == "scontrol" && args[1] == "node":
		return []byte("NodeName=n1 Gres=gpu:2 State=IDLE Partitions=p\n"), nil
	case name == "scontrol":
		return []byte("No reservations in the system\n"), nil
	case args[0] == "--helpformat":
		return []byte(strings.ReplaceAll(strings.Join(slurm.Fields(), " "), "Suspended", "")), nil
	}
	from, err := time.Parse("2006-01-02T15:04:05", args[slices.Index(args, "-S")+1])
	if err != nil {
		a.Fatal(err)
	}
	a.back = append(a.back, a.now.Sub(from))
	var shown []run
	for _, r := range a.rows {
		if r.end < 0 || !after(r.end).Before(from) {
			shown = append(shown, r)
		}
	}
	return []byte(printed(shown)), nil
}

// looks watches from one minute to another, and leaves the record as a process that ended.
func (a *accounting) looks(path string, from, to, every int, each func(minute int, s *Slurm)) []File {
	a.Helper()
	d, err := Open(path)
	if err != nil {
		a.Fatal(err)
	}
	source := NewSlurm(d)
	source.Run = a.answer
	w := &Watch{Source: source, Dir: d, Every: time.Duration(every) * time.Minute, Looked: func() {}}
	for m := from; m <= to; m += every {
		a.now = after(m)
		each(m, source)
		if err := w.look(a.Context(), a.now); err != nil {
			a.Fatalf("minute %d: %v", m, err)
		}
	}
	files, err := d.Files()
	if err != nil {
		a.Fatal(err)
	}
	if err := d.Close(); err != nil {
		a.Fatal(err)
	}
	return files
}

// TestAccountingHearsLate: a run of which accounting hears hours after its end, and which no look at the queue saw, is in the record: each
// hour a look asks a day back. The others ask for what is new alone, as all rows of a day each minute would cost the database much.
func TestAccountingHearsLate(t *testing.T) {
	a := &accounting{T: t}
	files := a.looks(t.TempDir(), 0, 24*60, 10, func(m int, _ *Slurm) {
		switch m {
		case 5 * 60:
			a.rows = append(a.rows, run{1, "COMPLETED", 11, 18, 1})
		case 23*60 + 50: // only the last look asks as far back as its end
			a.rows = append(a.rows, run{2, "COMPLETED", 1, 9, 2})
		}
	})
	h, err := read(history.Options{}, files)
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Runs) != 2 {
		t.Errorf("%d runs of 2: %+v", len(h.Runs), h.Runs)
	}
	for i, back := range a.back[1:] {
		want := 20 * time.Minute // to the look before and what ended shortly before that
		if (i+1)%6 == 0 {
			want = 25 * time.Hour
		}
		if back != want {
			t.Errorf("the look %d minutes behind the first asks %v back, want %v", 10*(i+1), back, want)
		}
	}
}

// TestARowIsWrittenOnce: a row stands in the record once as long as sacct may print it, also where another process goes on at the end of
// the second day, or a day goes by without a look. Behind that it is forgotten: a record goes on for years.
func TestARowIsWrittenOnce(t *testing.T) {
	path := t.TempDir()
	a := &accounting{T: t, rows: []run{{1, "RUNNING", -60, -1, 1}}}
	const hour, day = 60, 24 * 60
	known := 0
	count := func(_ int, s *Slurm) { known = len(s.rows) }
	const midnight = 40
	a.looks(path, midnight, midnight+2*day-hour, hour, count)
	last := midnight + 2*day - hour/2
	a.looks(path, last, last, hour, count) // another process finds it in the file of the day before
	a.rows = append(a.rows, run{2, "COMPLETED", last, last + 1, 2})
	files := a.looks(path, last+hour, last+hour+day, day, count) // nobody looks for a day
	if known != 2 {
		t.Errorf("%d rows are known of 2", known)
	}
	rows := map[string]int{}
	for _, f := range files {
		if err := each(f.Path, func(l *record.Line) bool {
			for _, row := range l.Jobs[min(1, len(l.Jobs)):] {
				id, _, _ := strings.Cut(row, "\x1f")
				rows[id]++
			}
			return true
		}); err != nil {
			t.Fatal(err)
		}
	}
	if len(rows) != 2 || rows["1"] != 1 || rows["2"] != 1 {
		t.Errorf("rows by job: %v, want each once", rows)
	}
	a.looks(path, last+2*hour+day, last+5*day, hour, count)
	if known != 1 {
		t.Errorf("%d rows are known days behind the end of one, want that of the run that goes on alone", known)
	}
}
