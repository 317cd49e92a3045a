package workdirs

import (
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// Work directories that are counted are those that a search of all jobs finds.
func TestWorkDirectoriesAreCounted(t *testing.T) {
	type one struct {
		id   string
		over bool
	}
	rapid.Check(t, func(rt *rapid.T) {
		w, plain := newCounts(), map[job.ID]one{}
		for range rapid.IntRange(1, 40).Draw(rt, "facts") {
			name := rapid.SampledFrom([]job.ID{"a", "b", "c", "d"}).Draw(rt, "job")
			was, known := plain[name]
			f := protocol.Fact{Job: name}
			switch rapid.IntRange(0, 4).Draw(rt, "what") {
			case 0:
				spec := &job.Spec{Name: name}
				f.Kind, f.Body = protocol.JobAccepted, &protocol.Acceptance{Spec: spec}
				spec.Launch.Workdir = rapid.SampledFrom([]string{"", "x", "y"}).Draw(rt, "work directory")
				plain[name] = one{id: spec.Launch.Workdir}
			case 1:
				if f.Kind = protocol.JobRequeued; known {
					plain[name] = one{id: was.id}
				}
			case 2:
				if f.Kind = protocol.JobClosed; known {
					plain[name] = one{id: was.id, over: true}
				}
			case 3:
				f.Kind = protocol.JobForgotten
				delete(plain, name)
			case 4:
				f.Kind = protocol.JobArchived
				delete(plain, name)
			}
			w.fact(&f)
			for _, id := range []string{"", "x", "y"} {
				needs, live := 0, 0
				for _, p := range plain {
					if p.id == id && id != "" {
						needs++
						if !p.over {
							live++
						}
					}
				}
				if w.needs[id] != needs || w.live[id] != live {
					rt.Fatalf("%q: %d need it, %d of them live; want %d and %d", id, w.needs[id], w.live[id], needs, live)
				}
			}
			if len(w.of) > len(plain) || len(w.needs) > 2 || len(w.live) > 2 {
				rt.Fatalf("%+v", w)
			}
		}
	})
}
