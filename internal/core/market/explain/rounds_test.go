package explain

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/quantity"
)

// fakeAnswers say the same to all windows until they are changed.
type fakeAnswers struct {
	standing Reason
	needs    []time.Duration
}

func (a *fakeAnswers) Eligibility() Reason          { return a.standing }
func (a *fakeAnswers) Classes() int                 { return len(a.needs) }
func (a *fakeAnswers) Need(class int) time.Duration { return a.needs[class] }
func (a *fakeAnswers) Refusal(class int) atomizer.Refusal {
	return atomizer.Refusal{Why: []atomizer.Why{atomizer.TooShort, atomizer.Barred, atomizer.Unsafe}[class], Need: a.needs[class]}
}

// TestRoundsAreCountedAsIfOneByOne: whatever is held, won and changed, a job's counts are those of somebody who counts each round for it.
func TestRoundsAreCountedAsIfOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const classes = 3
		var r Rounds
		for range classes {
			r.Cover()
		}
		type counted struct {
			answers     fakeAnswers
			share       Share
			kept, plain Counts
		}
		drawn := func() (a fakeAnswers) {
			a.standing = rapid.SampledFrom([]Reason{Eligible, Eligible, Paused, Resting}).Draw(t, "standing")
			for range classes {
				a.needs = append(a.needs, time.Duration(rapid.IntRange(1, 5).Draw(t, "need")))
			}
			return a
		}
		jobs := make([]*counted, rapid.IntRange(1, 6).Draw(t, "jobs"))
		for i := range jobs {
			jobs[i] = &counted{answers: drawn()}
			r.Begin(&jobs[i].share, &jobs[i].answers)
		}
		now := quantity.Instant(1)
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			now++
			j := rapid.SampledFrom(jobs).Draw(t, "job")
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0: // it answers otherwise now
				r.End(&j.share, &j.answers, &j.kept)
				j.answers = drawn()
				r.Begin(&j.share, &j.answers)
			default:
				class, length := rapid.IntRange(0, classes-1).Draw(t, "class"), time.Duration(rapid.IntRange(1, 5).Draw(t, "length"))
				wins := j.answers.standing == Eligible && rapid.Bool().Draw(t, "wins")
				if wins {
					r.Settle(&j.share, &j.answers, &j.kept)
				}
				r.Note(class, length, now)
				if wins {
					r.Skip(&j.share)
				}
				for _, o := range jobs {
					switch a := &o.answers; {
					case wins && o == j:
					case a.standing != Eligible:
						o.plain.Add(a.standing, now)
					case a.needs[class] <= length:
						o.plain.Add(LostToPolicy, now)
					default:
						o.plain.Refuse(a.Refusal(class), now)
					}
				}
			}
			for i, o := range jobs {
				so := o.kept.Clone()
				r.AddTo(&o.share, &o.answers, &so)
				if !reflect.DeepEqual(so.All(), o.plain.All()) {
					t.Fatalf("job %d counts\n%+v\none by one\n%+v", i, so.All(), o.plain.All())
				}
			}
		}
	})
}
