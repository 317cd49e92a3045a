package forecast

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Work is a job of a record that names no devices.
type Work struct {
	// Submit is when it came, Start when it began; quantity.Never where the record does not say.
	Submit, Start quantity.Instant
	Runs          time.Duration
	GPUs          int
}

// Place puts work on devices, the lowest numbers that are free: where the record says when it began, then; else in the order in which it
// came, each as soon as there is room and none before it waits. gpus are there; 0: as many as are held at once, for which every start must
// be known. The log begins with the first submission and ends with the last start, where all that is known of the cluster ends.
// waited is how many jobs were too large and are left out.
func Place(work []Work, gpus int) (l *Log, left int) {
	work = slices.Clone(work)
	slices.SortStableFunc(work, func(a, b Work) int {
		return cmp.Or(cmp.Compare(a.when(), b.when()), cmp.Compare(a.Submit, b.Submit), cmp.Compare(a.GPUs, b.GPUs),
			cmp.Compare(a.Runs, b.Runs))
	})
	p := placing{}
	l = &Log{From: quantity.Never}
	for p.n < gpus {
		p.grow()
	}
	now := quantity.Instant(0)
	for _, w := range work {
		if w.GPUs <= 0 || w.Runs <= 0 || gpus > 0 && w.GPUs > gpus {
			left++
			continue
		}
		known := w.Start != quantity.Never
		if known {
			now = max(now, w.Start)
		} else {
			now = max(now, w.Submit)
		}
		p.release(now)
		for len(p.free) < w.GPUs {
			if gpus == 0 {
				p.grow()
				continue
			}
			now = max(now, p.busy[0].at)
			p.release(now)
		}
		l.From, l.To = min(l.From, w.Submit), max(l.To, now)
		for range w.GPUs {
			d := heap.Pop(&p.free).(int)
			p.devices[d] = append(p.devices[d], Span{From: now, To: now.Add(w.Runs), Asked: min(now, w.Submit)})
			heap.Push(&p.busy, until{now.Add(w.Runs), d})
		}
	}
	for d := range p.devices {
		l.Devices = append(l.Devices, Device{Name: fmt.Sprintf("gpu%05d", d), Busy: p.devices[d]})
	}
	return l, left
}

// when is where a job stands in the order.
func (w *Work) when() quantity.Instant {
	if w.Start != quantity.Never {
		return w.Start
	}
	return w.Submit
}

// placing is devices while work is put on them.
type placing struct {
	n       int
	free    numbers
	busy    untils
	devices [][]Span
}

func (p *placing) grow() {
	heap.Push(&p.free, p.n)
	p.devices = append(p.devices, nil)
	p.n++
}

func (p *placing) release(now quantity.Instant) {
	for len(p.busy) > 0 && p.busy[0].at <= now {
		heap.Push(&p.free, heap.Pop(&p.busy).(until).device)
	}
}

type numbers []int

func (h numbers) Len() int           { return len(h) }
func (h numbers) Less(i, j int) bool { return h[i] < h[j] }
func (h numbers) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *numbers) Push(x any)        { *h = append(*h, x.(int)) }
func (h *numbers) Pop() any {
	n := len(*h) - 1
	x := (*h)[n]
	*h = (*h)[:n]
	return x
}

type until struct {
	at     quantity.Instant
	device int
}

type untils []until

func (h untils) Len() int { return len(h) }
func (h untils) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].device < h[j].device
}
func (h untils) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *untils) Push(x any)   { *h = append(*h, x.(until)) }
func (h *untils) Pop() any {
	n := len(*h) - 1
	x := (*h)[n]
	*h = (*h)[:n]
	return x
}
