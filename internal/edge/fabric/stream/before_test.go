package stream

import (
	"reflect"
	"testing"
	"time"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/wire"
)

// TestALinkToTheBuildBefore: it is told all but what it can't read; who said the message keeps them.
func TestALinkToTheBuildBefore(t *testing.T) {
	for newest := range uint32(3) {
		linkTo(t, newest+1)
	}
}

// linkTo checks what a link says whose other side speaks versions up to newest.
func linkTo(t *testing.T, newest uint32) {
	t.Helper()
	slice := protocol.Slice{ID: "m/gpu0", Rack: "r", Address: "10.0.0.7"}
	plan := protocol.Plan{Member: 1, Members: 2, Addresses: []string{"10.0.0.7", "10.0.0.8"}, Port: 29400}
	saving := &job.Spec{Kind: job.Rigid, Total: 9, Owner: "ada", Saves: true}
	stock := &protocol.Stock{Slices: []protocol.Slice{slice}, Until: 7, Leaves: true}
	bare := slice
	bare.Address = ""
	for _, c := range []struct{ is, want protocol.Message }{
		{protocol.Message{Kind: protocol.Offer, Body: &protocol.SliceView{Slice: slice, Node: "m"}},
			protocol.Message{Kind: protocol.Offer, Body: &protocol.SliceView{Slice: bare, Node: "m"}}},
		{protocol.Message{Kind: protocol.Inventory, Body: stock},
			protocol.Message{Kind: protocol.Inventory, Body: &protocol.Stock{Slices: []protocol.Slice{bare}}}},
		{protocol.Message{Kind: protocol.Redeem, Body: &protocol.Work{Placement: protocol.Placement{Plan: plan}, Spec: saving}},
			protocol.Message{Kind: protocol.Redeem, Body: &protocol.Work{Placement: protocol.Placement{
				Plan: protocol.Plan{Member: 1, Members: 2}}, Spec: &job.Spec{Kind: job.Rigid, Total: 9}}}},
		{protocol.Message{Kind: protocol.Ask, Body: &protocol.Asking{Placement: protocol.Placement{Plan: plan}}},
			protocol.Message{Kind: protocol.Ask, Body: &protocol.Asking{Placement: protocol.Placement{
				Plan: protocol.Plan{Member: 1, Members: 2}}}}},
		{protocol.Message{Kind: protocol.Tick}, protocol.Message{Kind: protocol.Tick}},
	} {
		want := c.is
		if newest < 2 {
			want = c.want
		}
		s := newSession(Timing{}.filled(), "", time.Now, nil)
		if err := s.greet(&pb.Hello{Oldest: 1, Newest: newest}); err != nil {
			t.Fatal(err)
		}
		f := &pb.Frame{}
		if n := s.fill(f, []protocol.Message{c.is}); n != 1 || len(f.Messages) != 1 {
			t.Fatalf("%d of one message went into the frame", n)
		}
		got, err := wire.DecodeMessage(f.Messages[0])
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("to version %d: %+v, %v; want %+v", newest, got.Body, err, want.Body)
		}
	}
	if slice.Address == "" || stock.Slices[0].Address == "" || plan.Port == 0 || !saving.Saves || saving.Owner == "" || stock.Until == 0 {
		t.Error("what was said has changed")
	}
}
