package clearing

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// located is the rule of Joint over bids that carry their window in ID's thousands.
func located(a, b *Bid) bool {
	if a.Job == b.Job && a.Work == b.Work {
		return false
	}
	return a.ID/1000 != b.ID/1000 || !a.overlaps(b)
}

// spread deals bids out to windows.
func spread(bids []Bid, window func(i int) int, windows int) ([][]Bid, []Bid) {
	dealt := make([][]Bid, windows)
	for i, b := range bids {
		w := window(i)
		b.ID = int32(w*1000 + i)
		dealt[w] = append(dealt[w], b)
	}
	return dealt, slices.Concat(dealt...)
}

// gathered are the winners of a plan, as indices of all bids.
func gathered(windows [][]Bid, won [][]int32) []int32 {
	var all []int32
	from := int32(0)
	for w, list := range won {
		for _, i := range list {
			all = append(all, from+i)
		}
		from += int32(len(windows[w]))
	}
	return all
}

// lawful fails unless the plan keeps the rule and its figures stand in order.
func lawful(t rapid.TB, windows [][]Bid, all []Bid, p Plan) {
	t.Helper()
	sum := int64(0)
	won := gathered(windows, p.Won)
	for k, i := range won {
		for _, j := range won[:k] {
			if !located(&all[i], &all[j]) {
				t.Fatalf("%+v and %+v both won", all[i], all[j])
			}
		}
		sum += all[i].Weight
	}
	for w, list := range p.Won {
		if !slices.IsSortedFunc(list, func(i, j int32) int { return int(windows[w][i].Start - windows[w][j].Start) }) {
			t.Fatalf("window %d: %v is not in order of start", w, list)
		}
	}
	if sum != p.Value || p.Sequential > p.Value || p.Regret() < 0 || p.Value > p.Bound || p.Bound > p.Independent || p.Bound > 2*p.Value ||
		p.Exact != (p.Value == p.Bound) {
		t.Fatalf("winners weigh %d; %+v", sum, p)
	}
}

// Two windows and one piece of work: after selling it in the first, the second has nothing; together it goes where it is
// worth less, and the other job takes its place.
func TestJointAgainstOneAfterAnother(t *testing.T) {
	windows := [][]Bid{
		{{End: 10, Weight: 9}, {End: 10, Weight: 8, Job: 1}},
		{{Start: 50, End: 60, Weight: 7}},
	}
	var c Clearer
	p := c.Joint(windows, nil)
	if p.Sequential != 9 || p.Value != 15 || p.Independent != 16 || p.Regret() != 6 || !p.Exact {
		t.Errorf("%+v; want 9 one after another, 15 together, 16 with the work sold twice", p)
	}
	if !slices.Equal(p.Won[0], []int32{1}) || !slices.Equal(p.Won[1], []int32{0}) {
		t.Errorf("won %v; want job 1 in the first and job 0 in the second", p.Won)
	}
	p = c.Joint(windows, []At{{0, 0}, {1, 0}, {2, 0}, {0, 5}})
	if p.Value != 9 || !slices.Equal(p.Stand, []At{{0, 0}}) || len(p.Won[1]) != 0 {
		t.Errorf("with job 0 fixed in the first %+v; want that alone: its work is not sold again", p)
	}
	// Another work of the same job is no obstacle.
	windows[1][0].Work = 1
	if p = c.Joint(windows, nil); p.Value != 16 {
		t.Errorf("two works: value %d; want 16", p.Value)
	}
}

func TestJointIsOptimalWhenSmall(t *testing.T) {
	var c Clearer
	a, b, other := Bid{ID: 1, Job: 1, Work: 1, End: 2, Weight: 1}, Bid{ID: 2, Job: 1, End: 2, Weight: 1},
		Bid{ID: 1001, Job: 1, End: 1, Weight: 1}
	for _, first := range [][]Bid{{a, b}, {b, a}} { // worth the same: which wins says what is left for the second window
		windows := [][]Bid{first, {other}}
		p := c.Joint(windows, nil)
		if sequential, _ := oneByOne(windows); p.Value != 2 || p.Sequential != sequential {
			t.Errorf("%+v; one after another is worth %d", p, sequential)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		bids := drawBids(t, 12, 10)
		windows, all := spread(bids, func(int) int { return rapid.IntRange(0, 2).Draw(t, "window") }, 3)
		p := c.Joint(windows, nil)
		lawful(t, windows, all, p)
		if want := brute(all, located); p.Value != want || !p.Exact {
			t.Fatalf("%+v; the best is %d", p, want)
		}
		if sequential, independent := oneByOne(windows); p.Sequential != sequential || p.Independent != independent {
			t.Fatalf("%+v; one after another is worth %d, each alone %d", p, sequential, independent)
		}
	})
}

// oneByOne clears one window after another, without what is sold, and each as if it were alone. Of plans that are worth the same one is
// chosen by the jobs' numbers, and what is sold later depends on it: so the works are numbered as Joint does.
func oneByOne(windows [][]Bid) (sequential, independent int64) {
	type work struct{ job, work int32 }
	var all []work
	for _, bids := range windows {
		for i := range bids {
			if bids[i].fits() {
				all = append(all, work{bids[i].Job, bids[i].Work})
			}
		}
	}
	slices.SortFunc(all, func(a, b work) int { return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.work, b.work)) })
	all = slices.Compact(all)
	sold := map[work]bool{}
	var c Clearer
	for _, bids := range windows {
		_, alone := c.Clear(bids)
		independent += alone
		var left []Bid
		for _, b := range bids {
			if w := (work{b.Job, b.Work}); b.fits() && !sold[w] {
				b.Job, b.Work = int32(slices.Index(all, w)), 0
				left = append(left, b)
			}
		}
		won, _ := c.Clear(left)
		for _, i := range won {
			if k := all[left[i].Job]; !sold[k] {
				sold[k] = true
				sequential += left[i].Weight
			}
		}
	}
	return sequential, independent
}

func TestJointAroundFixed(t *testing.T) {
	var c Clearer
	rapid.Check(t, func(t *rapid.T) {
		bids := drawBids(t, 12, 10)
		windows, all := spread(bids, func(int) int { return rapid.IntRange(0, 1).Draw(t, "window") }, 2)
		var list []At
		for range rapid.IntRange(1, 3).Draw(t, "fixed") {
			list = append(list, At{rapid.Int32Range(0, 2).Draw(t, "window"), rapid.Int32Range(0, 8).Draw(t, "bid")})
		}
		p := c.Joint(windows, list)
		lawful(t, windows, all, p)
		var stand, rest []Bid
		sum := int64(0)
		for _, at := range list {
			if int(at.Window) >= len(windows) || int(at.Bid) >= len(windows[at.Window]) {
				continue
			}
			b := windows[at.Window][at.Bid]
			if b.fits() && !slices.ContainsFunc(stand, func(s Bid) bool { return !located(&s, &b) }) {
				stand = append(stand, b)
				sum += b.Weight
				if !slices.Contains(p.Stand, at) || !slices.Contains(p.Won[at.Window], at.Bid) {
					t.Fatalf("%v is not among %v, %v", at, p.Stand, p.Won)
				}
			}
		}
		if len(stand) != len(p.Stand) {
			t.Fatalf("%v stand; want %v", p.Stand, stand)
		}
		for _, b := range all {
			if !slices.ContainsFunc(stand, func(s Bid) bool { return !located(&s, &b) }) {
				rest = append(rest, b)
			}
		}
		if want := sum + brute(rest, located); p.Value != want {
			t.Fatalf("value %d; want %d", p.Value, want)
		}
	})
}

func TestJointBeyond(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 19))
	var c Clearer
	windows := node(rng, 4, 200)
	windows, all := spread(slices.Concat(windows...), func(i int) int { return i / 200 }, 4)
	lawful(t, windows, all, c.Joint(windows, nil))
}

// node draws the windows of one node: every job bids four variants in each of them, all for the same work.
func node(rng *rand.Rand, windows, bids int) [][]Bid {
	out := make([][]Bid, windows)
	for w := range out {
		out[w] = market(rng, bids, true)
	}
	return out
}
