package twin_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/wire"
)

// toldOf are facts of the three actors of a village in which much happens, of every kind: what it does not come to is told at the end.
func toldOf(t *testing.T) *village {
	seed := splitmix(1)
	v := newVillage(t, func(n int) int { return int(seed() % uint64(n)) }, &filing.Config{Keep: 20 * time.Second})
	v.advance(time.Second)
	submit := func(name job.ID, total int64, kind job.Kind) {
		s := spec(t, name, kind, total, time.Second)
		s.Unit = string(name)
		v.ask(protocol.Message{Kind: protocol.Submit, Job: name,
			Body: &protocol.Submission{Request: string(name), Digest: string(name), Spec: s}})
	}
	v.ask(protocol.Message{Kind: protocol.SetQueue,
		Body: &protocol.QueueSetting{Request: "q", Queue: &protocol.Queue{Name: "q", Weight: 2}}})
	submit("a", 200, job.Steps)
	submit("b", 90, job.Items)
	v.advance(30 * time.Second)
	v.ask(protocol.Message{Kind: protocol.Cancel, Job: "a", Body: &protocol.Cancellation{Request: "c"}})
	v.advance(10 * time.Second)
	v.ask(protocol.Message{Kind: protocol.Requeue, Job: "a", Body: &protocol.Requeueing{Request: "again"}})
	submit("c", 30, job.Items)
	v.advance(5 * time.Minute)
	v.ask(protocol.Message{Kind: protocol.Delete, Job: "b", Body: &protocol.Deletion{Request: "d"}})
	submit("d", 500, job.Steps)
	v.ask(protocol.Message{Kind: protocol.PauseJob, Job: "d", Body: &protocol.Pause{Request: "p", Paused: true}})
	v.advance(20 * time.Second)
	v.ask(protocol.Message{Kind: protocol.PauseJob, Job: "d", Body: &protocol.Pause{Request: "r"}})
	v.advance(20 * time.Second)
	last := v.facts[1][slices.IndexFunc(v.facts[1], func(f protocol.Fact) bool { return f.Kind == protocol.Claimed && f.Job == "d" })]
	sale, slice := last.Body.(*protocol.Sale), machine("")[0].ID
	longer := &protocol.Extent{Range: sale.Range, End: sale.End.Add(time.Second)}
	for i, more := range [][]protocol.Fact{{
		{Kind: protocol.JobDrawn, Job: "d", Epoch: 1, Body: &protocol.InZone{Zone: zoneID}},
		{Kind: protocol.ZoneDrained, Body: &protocol.InZone{Zone: "y"}},
		{Kind: protocol.Rehomed, Job: "d", Epoch: 2, Body: &protocol.InZone{Zone: "x"}},
		{Kind: protocol.JobDeparted, Job: "d", Epoch: 1, Generation: 1, Body: &protocol.Departure{Zone: zoneID, Pending: true}},
	}, {
		{Kind: protocol.ClaimExtended, Job: "d", Token: last.Token, Body: longer},
		{Kind: protocol.QueueCalibrated, Body: &protocol.Calibration{Queue: "q", Credits: 5}},
		{Kind: protocol.Taught, Body: &protocol.Lesson{Queue: "q", Template: "t"}},
		{Kind: protocol.HomeLeaving, Job: "d", Generation: 1, Body: &protocol.Reason{Text: "drained"}},
	}, {
		{Kind: protocol.LeaseExtended, Job: "d", Token: last.Token, Body: longer},
		{Kind: protocol.Truncated, Job: "d", Token: last.Token, Body: &protocol.Truncation{End: sale.End, Text: "reserved"}},
		{Kind: protocol.SubjobVacated, Job: "d", Token: last.Token},
		{Kind: protocol.Quarantined, Slice: slice, At: v.now, Token: job.Token{Epoch: 9}, Body: &protocol.Reason{Text: "stuck"}},
		{Kind: protocol.QuarantineLifted, Slice: slice},
		{Kind: protocol.SliceFailed, Slice: slice, Body: &health.Fault{Cause: 1, Text: "fell off the bus"}},
		{Kind: protocol.SliceMended, Slice: slice, Body: &protocol.Reason{Text: "mended"}},
		{Kind: protocol.ReservationMade, Slice: slice, Body: &protocol.Reservation{ID: 1 << 20, Slice: slice, Start: 1, End: 2}},
		{Kind: protocol.ReservationGone, Body: &protocol.Reservation{ID: 1 << 20}},
	}} {
		for _, f := range more {
			f.Actor = v.parties[i].Address
			v.facts[i] = append(v.facts[i], f)
		}
	}
	return v
}

// without calls each for an encoding of a fact of which one part is absent, also within its parts, however deep.
func without(b []byte, path string, each func(path string, b []byte)) {
	for at := 0; at < len(b); {
		n, kind, tag := protowire.ConsumeTag(b[at:])
		if tag < 0 {
			return // a text, which has no parts
		}
		size := protowire.ConsumeFieldValue(n, kind, b[at+tag:])
		if size < 0 {
			return
		}
		before, after := b[:at:at], b[at+tag+size:]
		name := fmt.Sprintf("%s.%d", path, n)
		each(name, append(before, after...))
		if kind == protowire.BytesType {
			inner, _ := protowire.ConsumeBytes(b[at+tag:])
			without(inner, name, func(path string, inner []byte) {
				field := protowire.AppendBytes(protowire.AppendTag(before, n, kind), inner)
				each(path, append(field, after...))
			})
		}
		at += tag + size
	}
}

// TestAFactWithoutAPartIsRefused: whatever is absent from a stored fact, it is refused as damage, or what it is folded into says which
// promise it breaks, or it can be folded. Nothing else comes of it.
func TestAFactWithoutAPartIsRefused(t *testing.T) {
	v := toldOf(t)
	renames := protocol.Renames{nodeID: "other"}
	kinds, refused := map[protocol.FactKind]int{}, 0
	for n, facts := range slices.Concat(v.facts, v.captured()) {
		for at := range facts {
			i := n % len(v.parties)
			k := facts[at].Kind
			if kinds[k]++; kinds[k] > 1 && k != protocol.HomeKept && k != protocol.Committed {
				continue
			}
			encoded := wire.AppendFact(nil, &facts[at])
			without(encoded[1:], fmt.Sprintf("fact %d: kind %d", at, k), func(path string, b []byte) {
				read := func() (protocol.Fact, error) { return wire.DecodeFact(append([]byte{wire.Version}, b...)) }
				f, err := read()
				if err != nil {
					if of := errkind.Of(err); of != errkind.Corrupt && of != errkind.Unsupported {
						t.Errorf("%s: %v (%v)", path, err, of)
					}
					refused++
					return
				}
				renamed, _ := read()
				renames.Fact(&renamed)
				if err := v.fold(i, facts[:at], f, facts[at+1:]); err != nil {
					t.Errorf("%s is absent from %+v: %v", path, facts[at].Body, err)
				}
			})
		}
	}
	for k := 1; k < 1<<7; k++ {
		_, err := wire.DecodeFact([]byte{wire.Version, 0x08, byte(k)})
		if errkind.Of(err) != errkind.Unsupported && kinds[protocol.FactKind(k)] == 0 {
			t.Errorf("no fact of kind %d was told", k)
		}
	}
	if refused == 0 {
		t.Error("nothing was refused: the test shows nothing")
	}
}

// captured are snapshots of the actors as they are told last.
func (v *village) captured() (all [][]protocol.Fact) {
	for i, party := range v.make().Parties() {
		for _, f := range v.facts[i] {
			party.Actor.Apply(f)
		}
		facts := capture.All(party.Actor.(capture.Source))
		for at := range facts {
			facts[at].Actor = party.Address
		}
		all = append(all, facts)
	}
	return all
}

// fold has a fresh actor take in facts, one of which is not as it was, and come up. An error is a panic that names no promise.
func (v *village) fold(i int, before []protocol.Fact, f protocol.Fact, after []protocol.Fact) (err error) {
	fresh := v.make().Parties()[i].Actor
	defer func() {
		switch p := recover().(type) {
		case nil:
		case error:
			if !errors.As(p, new(invariant.Broken)) {
				err = p
			}
		default:
			err = fmt.Errorf("%v", p)
		}
	}()
	for _, f := range before {
		fresh.Apply(f)
	}
	fresh.Apply(f)
	for _, f := range after {
		fresh.Apply(f)
	}
	var out protocol.Out
	fresh.Recover(v.now, &out)
	fresh.Step(v.now.Add(time.Second), actor.Tick(v.parties[i].Address), &out)
	for _, f := range capture.All(fresh.(capture.Source)) {
		if _, err := wire.DecodeFact(wire.AppendFact(nil, &f)); err != nil {
			return fmt.Errorf("what was captured of it is not read: %w", err)
		}
	}
	return nil
}
