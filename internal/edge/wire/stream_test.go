package wire

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// all reads a stream to its end.
func all(r io.Reader) (facts []protocol.Fact, err error) {
	err = ReadFacts(r, func(f protocol.Fact) error { facts = append(facts, f); return nil })
	return facts, err
}

// TestWhatIsSharedIsTheSame: read as a stream, or as a list, with what a Decoder shares, facts are what they are alone.
func TestWhatIsSharedIsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want []protocol.Fact
		for range rapid.IntRange(0, 4).Draw(t, "facts") {
			f := drawFact(t)
			want = append(want, f, f) // all of it comes again
		}
		b := AppendFacts(nil, want)
		got, err := all(iotest.OneByteReader(bytes.NewReader(b)))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v\n got %+v\nwant %+v", err, got, want)
		}
		var d Decoder
		got = nil
		err = EachFact(b, func(encoded []byte) error {
			var f protocol.Fact
			err := d.Fact(encoded, &f)
			got = append(got, f)
			return err
		})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v\n got %+v\nwant %+v", err, got, want)
		}
	})
}

// TestASpecIsSharedByTheTwoWhoHaveIt and not with a job that has another.
func TestASpecIsSharedByTheTwoWhoHaveIt(t *testing.T) {
	spec := func(name job.ID) *job.Spec { return &job.Spec{Name: name, Queue: "q", Total: 7} }
	b := AppendFacts(nil, []protocol.Fact{
		{Kind: protocol.JobAccepted, Job: "a", Body: &protocol.Acceptance{Spec: spec("a")}},
		{Kind: protocol.JobAccepted, Job: "b", Body: &protocol.Acceptance{Spec: spec("b")}},
		{Kind: protocol.HomeTaken, Job: "a", Body: &protocol.Taking{Spec: spec("a")}},
		{Kind: protocol.HomeKept, Job: "b", Body: &protocol.Keeping{Record: &protocol.Record{Job: "b", Spec: spec("b")}}},
	})
	got, err := all(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	specs := specsOf(got)
	if len(specs) != 4 || specs[0] != specs[2] || specs[1] != specs[3] || specs[0] == specs[1] {
		t.Errorf("specs: %p", specs)
	}
}

// specsOf are those that facts came with.
func specsOf(facts []protocol.Fact) (specs []*job.Spec) {
	for _, f := range facts {
		switch b := f.Body.(type) {
		case *protocol.Acceptance:
			specs = append(specs, b.Spec)
		case *protocol.Taking:
			specs = append(specs, b.Spec)
		case *protocol.Keeping:
			specs = append(specs, b.Record.Spec)
		}
	}
	return specs
}

// TestJobsThatAreAlikeShareASpec however many they are, and whoever has another one between them; after many others, two have it.
func TestJobsThatAreAlikeShareASpec(t *testing.T) {
	alike, other := &job.Spec{Queue: "q", Total: 7}, func(i int) *job.Spec { return &job.Spec{Queue: "q", Total: int64(100 + i)} }
	facts := []protocol.Fact{{Kind: protocol.JobAccepted, Body: &protocol.Acceptance{Spec: alike}},
		{Kind: protocol.JobAccepted, Body: &protocol.Acceptance{Spec: other(0)}},
		{Kind: protocol.JobAccepted, Body: &protocol.Acceptance{Spec: alike}},
		{Kind: protocol.HomeTaken, Body: &protocol.Taking{Spec: alike}}}
	for i := range 8 * sharedSpecs {
		facts = append(facts, protocol.Fact{Kind: protocol.JobAccepted, Body: &protocol.Acceptance{Spec: other(i)}})
	}
	for range 4 {
		facts = append(facts, protocol.Fact{Kind: protocol.JobAccepted, Body: &protocol.Acceptance{Spec: alike}})
	}
	got, err := all(bytes.NewReader(AppendFacts(nil, facts)))
	if err != nil {
		t.Fatal(err)
	}
	specs := specsOf(got)
	if specs[0] != specs[2] || specs[0] != specs[3] || specs[0] == specs[1] {
		t.Errorf("specs: %p", specs[:4])
	}
	if last := specs[len(specs)-4:]; last[1] != last[2] || last[2] != last[3] {
		t.Errorf("after many others: %p", last)
	}
}

// TestSpecsThatDifferShareTheirProfile where they have the same, and no other.
func TestSpecsThatDifferShareTheirProfile(t *testing.T) {
	spec := func(i int, mean quantity.Amount) *job.Spec {
		return &job.Spec{
			Total: int64(i), Profile: trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: 10, Mean: mean}}},
			Safe: trp.Table{Bounds: []int64{10}, Least: [][]quantity.Amount{{mean}}},
		}
	}
	want := []protocol.Fact{{Kind: protocol.JobAccepted, Body: &protocol.Acceptance{Spec: spec(1, 5)}},
		{Kind: protocol.JobAccepted, Body: &protocol.Acceptance{Spec: spec(2, 6)}},
		{Kind: protocol.JobAccepted, Body: &protocol.Acceptance{Spec: spec(3, 5)}}}
	got, err := all(bytes.NewReader(AppendFacts(nil, want)))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%v\n got %+v\nwant %+v", err, got, want)
	}
	specs := specsOf(got)
	a, b, c := specs[0], specs[1], specs[2]
	if &a.Profile.Phases[0] != &c.Profile.Phases[0] || &a.Safe.Least[0] != &c.Safe.Least[0] ||
		&a.Profile.Phases[0] == &b.Profile.Phases[0] {
		t.Errorf("%+v, %+v and %+v", a, b, c)
	}
}

// TestACutStreamIsRefused wherever it is cut but between two facts.
func TestACutStreamIsRefused(t *testing.T) {
	b := AppendFacts(nil, []protocol.Fact{{Kind: protocol.JobForgotten, Job: "a", Body: &protocol.Forgetting{}},
		{Kind: protocol.Booted, Epoch: 9}})
	for cut := range len(b) {
		facts, err := all(bytes.NewReader(b[:cut]))
		if whole := cut == 0 || cut == 1+int(b[0]); whole != (err == nil) || err != nil && errkind.Of(err) != errkind.Corrupt {
			t.Errorf("cut at %d of %d: %v after %d facts", cut, len(b), err, len(facts))
		}
	}
	if _, err := all(bytes.NewReader([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 1})); errkind.Of(err) != errkind.Corrupt {
		t.Errorf("a length that can not be: %v", err)
	}
	broken := errors.New("broken")
	if _, err := all(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("the reader's error was lost: %v", err)
	}
}
