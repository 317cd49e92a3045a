package play

import (
	"sync"

	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/workload/compose"
)

// Traces are the published traces below a folder, each read once and only if it is asked for. It is safe for concurrent use.
type Traces struct {
	// Dir is the folder; empty for none: then files of arrivals are looked for where the program runs.
	Dir                 string
	published, measured kept[compose.Inputs]
	mu                  sync.Mutex
	logs                map[*compose.Trace]*kept[*compose.Log]
}

// kept is what was read once, or the error of it.
type kept[T any] struct {
	once sync.Once
	got  T
	err  error
}

func (k *kept[T]) from(read func() (T, error)) (T, error) {
	k.once.Do(func() { k.got, k.err = read() })
	return k.got, k.err
}

// inputs reads what a stream is composed of.
func (t *Traces) inputs(s *scenario.Stream) (compose.Inputs, error) {
	if s.Trace == nil {
		return t.published.from(func() (compose.Inputs, error) { return compose.Published(t.Dir) })
	}
	in, err := compose.Modelled(), error(nil)
	if s.Measured {
		if in, err = t.measured.from(func() (compose.Inputs, error) { return compose.Measured(t.Dir) }); err != nil {
			return in, err
		}
	}
	l, err := t.log(s.Trace).from(func() (*compose.Log, error) { return s.Trace.Read(t.Dir) })
	if err != nil {
		return in, err
	}
	return in.With(l), nil
}

func (t *Traces) log(of *compose.Trace) *kept[*compose.Log] {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.logs == nil {
		t.logs = map[*compose.Trace]*kept[*compose.Log]{}
	}
	if t.logs[of] == nil {
		t.logs[of] = &kept[*compose.Log]{}
	}
	return t.logs[of]
}
