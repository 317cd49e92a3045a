package pages

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// pageOf is what one of the two lists shows of its jobs: the newest before the key, as many as it has room or patience for.
func pageOf(rt *rapid.T, all []status.Job, q status.JobQuery) (p status.JobPage) {
	end := len(all)
	if q.Before != (status.JobKey{}) {
		end, _ = slices.BinarySearchFunc(all, q.Before, func(j status.Job, k status.JobKey) int { return j.Key().Compare(k) })
	}
	from := max(0, end-rapid.IntRange(1, q.Limit).Draw(rt, "patience"))
	p.Jobs, p.Older = slices.Clone(all[from:end]), from
	if from > 0 {
		p.Next = all[from].Key()
	}
	return p
}

// Pages of two lists that are put together show every job once, in order, whatever either of them stops at.
func TestPagesOfTwoLists(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var hot, old, all []status.Job
		for i := range rapid.IntRange(0, 40).Draw(rt, "jobs") {
			j := status.Job{Name: job.ID(fmt.Sprintf("j%02d", i)), Submitted: quantity.Instant(i / 3)}
			all = append(all, j)
			where := rapid.IntRange(0, 2).Draw(rt, "where")
			if where != 0 {
				hot = append(hot, j)
			}
			if where != 1 { // both: it is on its way from the one to the other
				old = append(old, j)
			}
		}
		q := status.JobQuery{Limit: rapid.IntRange(1, 12).Draw(rt, "limit")}
		var got []status.Job
		for calls := 0; ; calls++ {
			a, b := pageOf(rt, hot, q), pageOf(rt, old, q)
			p := merged(q, a, b)
			if len(p.Jobs) > q.Limit {
				rt.Fatalf("%d jobs, limit %d", len(p.Jobs), q.Limit)
			}
			got = append(slices.Clone(p.Jobs), got...)
			if p.Next == (status.JobKey{}) {
				if p.Older != 0 {
					rt.Fatalf("%d older ones and no way to them", p.Older)
				}
				break
			}
			if q.Before = p.Next; calls > 100 {
				rt.Fatal("it never ends")
			}
		}
		if !slices.EqualFunc(got, all, func(a, b status.Job) bool { return a.Key() == b.Key() }) {
			rt.Fatalf("%d jobs of %d: %v", len(got), len(all), got)
		}
	})
}

// TestOneDamagedJobIsAWarning, and what else fails is an error; a page names some of many that are damaged, and counts the others.
func TestOneDamagedJobIsAWarning(t *testing.T) {
	var page status.JobPage
	if err := hidden(&page, nil); err != nil || len(page.Warnings) > 0 {
		t.Errorf("nothing: %v, %q", err, page.Warnings)
	}
	full := errkind.Errorf(errkind.Exhausted, "no room")
	if err := hidden(&page, full); !errors.Is(err, full) || len(page.Warnings) > 0 {
		t.Errorf("no room: %v, %q", err, page.Warnings)
	}
	for i := range 30 {
		if err := hidden(&page, errkind.Errorf(errkind.Corrupt, "job %d is damaged", i)); err != nil || len(page.Warnings) != i+1 {
			t.Fatalf("damage: %v, %q", err, page.Warnings)
		}
	}
	got := merged(status.JobQuery{}, status.JobPage{Warnings: []string{"job x is damaged"}}, page).Warnings
	if len(got) != maxWarnings+1 || got[0] != "job x is damaged" || got[maxWarnings] != "and 11 more jobs are damaged" ||
		page.Warnings[maxWarnings-1] != "job 19 is damaged" {
		t.Errorf("%q", got)
	}
}
