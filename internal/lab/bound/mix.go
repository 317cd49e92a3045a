package bound

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Mix is work put together by its speeds. It takes any number of jobs in memory that does not grow with them.
type Mix struct {
	classes []Class
	types   int // of the linear program
	step    int64
	work    map[Speeds][]float64 // seconds by bucket
	buckets int
	window  Window
	jobs    int
}

const (
	defaultBuckets = 12
	defaultTypes   = 40
	// typesKept are distinguished while work is added.
	typesKept = 512
	// rateTypes are distinguished for the capacity, which has no buckets.
	rateTypes = 96
)

// NewMix is an empty mix over these classes. Options count only if a window is given: without one (To <= From) there is
// one bucket, and all work counts whole.
func NewMix(classes []Class, w Window, o Options) *Mix {
	m := &Mix{classes: classes, types: cmp.Or(max(o.Types, 0), defaultTypes), step: 1, work: map[Speeds][]float64{}, buckets: 1, window: w}
	if w.To > w.From {
		m.buckets = cmp.Or(max(o.Buckets, 0), defaultBuckets)
	}
	return m
}

// Add a job.
func (m *Mix) Add(j *Job) {
	counted, bucket := *j, 0
	if m.window.To > m.window.From {
		ok := false
		if counted, ok = j.counts(m.classes, m.window); !ok {
			return
		}
		bucket = m.bucket(j)
	}
	m.jobs++
	for _, p := range counted.Parts {
		m.add(p.Speeds, bucket, p.Work.Seconds())
	}
}

// bucket in which a job comes.
func (m *Mix) bucket(j *Job) int {
	if j.Submit <= m.window.From {
		return 0
	}
	share := j.Submit.Sub(m.window.From).Seconds() / m.window.length()
	return min(int(share*float64(m.buckets)), m.buckets-1)
}

func (m *Mix) add(s Speeds, bucket int, seconds float64) {
	for c := range s {
		if c >= len(m.classes) || m.classes[c].Count == 0 {
			s[c] = 0
		}
	}
	if s == (Speeds{}) || seconds <= 0 {
		return
	}
	s = rounded(s, m.step)
	if m.work[s] == nil {
		m.work[s] = make([]float64, m.buckets)
	}
	m.work[s][bucket] += seconds
	for len(m.work) > typesKept {
		m.coarsen()
	}
}

// coarsen merges similar types.
func (m *Mix) coarsen() {
	m.step *= 2
	old := m.work
	m.work = map[Speeds][]float64{}
	for _, s := range slices.SortedFunc(maps.Keys(old), compare) { // in order, for sums of floats depend on it
		r := rounded(s, m.step)
		if m.work[r] == nil {
			m.work[r] = make([]float64, m.buckets)
		}
		for b, v := range old[s] {
			m.work[r][b] += v
		}
	}
}

func compare(a, b Speeds) int { return slices.Compare(a[:], b[:]) }

// rounded has every speed at the next multiple of step, so that what it bounds stays bounded. 0 stays 0.
func rounded(s Speeds, step int64) Speeds {
	for c := range s {
		s[c] = (s[c] + step - 1) / step * step
	}
	return s
}

// kind is one type of work.
type kind struct {
	speeds Speeds
	work   []float64 // by bucket
	sum    float64
}

// sorted lists the types in a fixed order.
func (m *Mix) sorted() []kind {
	list := make([]kind, 0, len(m.work))
	for _, s := range slices.SortedFunc(maps.Keys(m.work), compare) {
		k := kind{speeds: s, work: slices.Clone(m.work[s])}
		for _, v := range k.work {
			k.sum += v
		}
		list = append(list, k)
	}
	return list
}

// merged is at most so many types: as long as there are more, the two that cost least to be taken for one are.
func (m *Mix) merged(limit int) []kind {
	list := m.sorted()
	for len(list) > limit {
		least, a, b := math.Inf(1), 0, 0
		for i := range list {
			for k := range i {
				if c := list[i].apart(&list[k]); c < least {
					least, a, b = c, k, i
				}
			}
		}
		for c, s := range list[b].speeds {
			list[a].speeds[c] = max(list[a].speeds[c], s)
		}
		for x, v := range list[b].work {
			list[a].work[x] += v
		}
		list[a].sum += list[b].sum
		list = slices.Delete(list, b, b+1)
	}
	return list
}

// apart is what it costs to give two types the faster speed of both: work times the speed that it is given too much.
func (k *kind) apart(o *kind) float64 {
	cost := 0.
	for c := range k.speeds {
		top := max(k.speeds[c], o.speeds[c])
		cost += k.sum*float64(top-k.speeds[c]) + o.sum*float64(top-o.speeds[c])
	}
	return cost
}

// work of all kinds, in seconds.
func work(list []kind) float64 {
	sum := 0.
	for _, k := range list {
		sum += k.sum
	}
	return sum
}

// Rate is the capacity of the cluster for this mix: the most work per second that it can do for ever if work keeps coming
// in these proportions, in GPU-seconds of the reference per second. It is the value of max r over x >= 0 with, for every
// type i with the share w_i of the work, sum over c of s_ic x_ic >= r w_i, and for every class c, sum over i of x_ic <= its count.
// 0 for an empty mix.
func (m *Mix) Rate() float64 {
	t := m.capacity()
	if t == nil {
		return 0
	}
	return t.value(0)
}

// Prices are what a slice of each class is worth for this mix: the dual values of Rate's program, in GPU-seconds of the reference
// per second. At these prices the work comes to no more than the cluster is worth, as far as that can be. 0 for an empty mix.
func (m *Mix) Prices() (v [MaxClasses]float64) {
	if t := m.capacity(); t != nil {
		copy(v[:], t.dual()[len(t.basic)-len(m.classes):])
	}
	return v
}

// capacity is Rate's program, solved: a row for every type, then one for every class; nil for an empty mix.
func (m *Mix) capacity() *tableau {
	types := m.merged(rateTypes)
	total := work(types)
	if total == 0 {
		return nil
	}
	n, classes := len(types), len(m.classes)
	t := newTableau(1+n*classes, n+classes, 1)
	t.objective(0)[0] = -1
	for i, k := range types {
		row := t.constraint(i)
		row[0] = k.sum / total
		for c := range classes {
			row[1+i*classes+c] = -speed(k.speeds[c])
			if k.speeds[c] > 0 {
				t.constraint(n + c)[1+i*classes+c] = 1
			}
		}
	}
	for c := range classes {
		t.constraint(n + c)[t.columns] = float64(m.classes[c].Count)
	}
	t.solve(pivotLimit(t))
	return t
}
