package twin_test

import (
	"reflect"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/core/zone"
	"sluice.dev/sluice/internal/edge/tape"
	"sluice.dev/sluice/internal/lab/sim"
)

// TestATapeHasWhatProvidersSee: a zone that is told of a pool orders again what it did when its tape is played, and comes to the same
// digest after every call.
func TestATapeHasWhatProvidersSee(t *testing.T) {
	l := newLive(t)
	dir, now := t.TempDir(), quantity.At(time.Unix(1_800_000_000, 0))
	w := tape.NewWriter(dir, tape.Header{Boot: "b", Started: now}, tape.Limits{}, func(err error) { t.Error(err) })
	at := protocol.Address{Role: protocol.Zone, ID: string(zoneID)}
	find := func() *zone.Zone {
		for _, p := range l.build().Parties() {
			if p.Address == at {
				return p.Actor.(*zone.Zone)
			}
		}
		t.Fatal("there is no zone")
		return nil
	}
	z, calls, asked := find(), 0, 0
	var last supply.Order
	step := func(m protocol.Message) {
		var out protocol.Out
		m.To = at
		w.StepCall(at, now, &m)
		z.Step(now, m, &out)
		w.Digest(z.Digest())
		calls++
		for _, e := range out.Effects {
			if e.Kind == protocol.Ordered {
				last = *e.Body.(*supply.Order)
				asked += len(last.Ask)
			}
		}
		now = now.Add(5 * time.Second)
	}
	sight := supply.Sight{Pool: supply.Pool{
		Name: "p", Most: 3, Lengths: []time.Duration{10 * time.Minute, time.Hour}, Step: time.Minute, Idle: time.Minute,
		Slices: []supply.Slice{{Capacity: trp.Vector{trp.Memory: 40 << 30}, Speed: 1000, Profile: "3g.40gb"}},
	}}
	s := spec(t, "count", job.Items, 90_000, 100*time.Millisecond)
	step(protocol.Message{Kind: protocol.Adopt, From: protocol.Address{Role: protocol.Gate}, Job: s.Name, Epoch: 1,
		Body: &protocol.Adoption{Spec: s, At: now}})
	for i := range uint64(3) {
		sight.Number, sight.Seen, sight.Gaps = i+1, now, []supply.Gap{{Start: now, End: quantity.Never, Count: 3}}
		sight.Endings = append(sight.Endings, supply.Ending{Name: "p-1", How: supply.Preempted, Asked: now, Ended: now, Why: "others"})
		seen := sight
		step(protocol.Message{Kind: protocol.Sighted, From: protocol.Address{Role: protocol.Provider, ID: "p"}, Body: &seen})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if asked == 0 {
		t.Fatalf("nothing was asked for: %+v", last)
	}
	r, err := tape.Open(dir, "b")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	parties, played := l.build().Parties(), supply.Order{}
	for i := range parties {
		if z, ok := parties[i].Actor.(*zone.Zone); ok {
			parties[i].Actor = overheard{z, &played}
		}
	}
	done, err := sim.Replay(r, parties, nil)
	if err != nil || done.Compared != calls {
		t.Fatalf("%+v of %d calls: %v", done, calls, err)
	}
	if !reflect.DeepEqual(played, last) {
		t.Errorf("played, it ordered %+v; it was %+v", played, last)
	}
}

// overheard is a zone whose last order is noted.
type overheard struct {
	*zone.Zone
	last *supply.Order
}

func (o overheard) Step(now quantity.Instant, in protocol.Message, out *protocol.Out) {
	before := len(out.Effects)
	o.Zone.Step(now, in, out)
	for _, e := range out.Effects[before:] {
		if e.Kind == protocol.Ordered {
			*o.last = *e.Body.(*supply.Order)
		}
	}
}
