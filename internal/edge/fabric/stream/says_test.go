package stream

import (
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// A machine that names itself truly still can't say what is for people, gates, zones or the driver to say, nor offer another's slices:
// actors take the kind of a message for its sender's right to it.
func TestWhatAMachineMaySay(t *testing.T) {
	own, other := protocol.Slice{ID: "liar/gpu0"}, protocol.Slice{ID: "n/gpu0"}
	shorter, longer := protocol.Slice{ID: "lia/gpu0"}, protocol.Slice{ID: "liar2/gpu0"}
	filed := make([]protocol.Fact, 1)
	stock := func(all ...protocol.Slice) *protocol.Stock { return &protocol.Stock{Slices: all} }
	response := func(p protocol.Place) *protocol.Response { return &protocol.Response{Place: &p} }
	view := func(node job.NodeID, s protocol.Slice) *protocol.SliceView {
		return &protocol.SliceView{Node: node, Slice: s}
	}
	found := func(node job.NodeID, s protocol.Slice) protocol.Place { return protocol.Place{Node: node, Slice: s} }
	for _, c := range []struct {
		name string
		m    protocol.Message
		may  bool
	}{
		{"offers its own slice", protocol.Message{Kind: protocol.Offer, To: zone, Body: view("liar", own)}, true},
		{"offers another's slice", protocol.Message{Kind: protocol.Offer, To: zone, Body: view("liar", other)}, false},
		{"offers that of a shorter name", protocol.Message{Kind: protocol.Offer, To: zone, Body: view("liar", shorter)}, false},
		{"offers that of a longer name", protocol.Message{Kind: protocol.Offer, To: zone, Body: view("liar", longer)}, false},
		{"offers nobody's", protocol.Message{Kind: protocol.Offer, To: zone, Body: view("liar", protocol.Slice{ID: "liar"})}, false},
		{"offers for another", protocol.Message{Kind: protocol.Offer, To: zone, Body: view("n", own)}, false},
		{"lists its slices", protocol.Message{Kind: protocol.Inventory, To: gate, Body: stock(own)}, true},
		{"lists another's", protocol.Message{Kind: protocol.Inventory, To: gate, Body: stock(own, other)}, false},
		{"finds nothing", protocol.Message{Kind: protocol.Probed, To: zone, Body: &protocol.Response{}}, true},
		{"finds a place", protocol.Message{Kind: protocol.Probed, To: zone, Body: response(found("liar", own))}, true},
		{"finds another's", protocol.Message{Kind: protocol.Probed, To: zone, Body: response(found("n", other))}, false},
		{"has a winner", protocol.Message{Kind: protocol.Winning, To: zone, Body: &protocol.Prize{Place: found("liar", own)}}, true},
		{"sells another's", protocol.Message{Kind: protocol.Winning, To: zone, Body: &protocol.Prize{Place: found("liar", other)}}, false},
		{"ends a subjob", protocol.Message{Kind: protocol.Result, To: zone, Body: &protocol.Conclusion{}}, true},
		{"speaks to a gate as to a zone", protocol.Message{Kind: protocol.Result, To: gate, Body: &protocol.Conclusion{}}, false},
		{"archives", protocol.Message{Kind: protocol.Result, To: zone, Body: &protocol.Conclusion{}, Filed: filed}, false},
		{"submits", protocol.Message{Kind: protocol.Submit, To: gate, Body: &protocol.Submission{}}, false},
		{"cancels", protocol.Message{Kind: protocol.Cancel, To: zone, Job: "j", Epoch: 1, Body: &protocol.Cancellation{}}, false},
		{"gives a job to a zone", protocol.Message{Kind: protocol.Adopt, To: zone, Job: "j", Body: &protocol.Adoption{}}, false},
		{"sets a queue", protocol.Message{Kind: protocol.SetQueue, To: gate, Body: &protocol.QueueSetting{}}, false},
		{"is the clock", protocol.Message{Kind: protocol.Tick, To: zone}, false},
		{"is an agent", protocol.Message{Kind: protocol.Answer, To: zone, Body: &protocol.Proposal{}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, delivered := NewHead(HeadOptions{}), 0
			for _, a := range []protocol.Address{gate, zone} {
				if err := h.Attach(a, func(protocol.Message) { delivered++ }); err != nil {
					t.Fatal(err)
				}
			}
			c.m.From = protocol.Address{Role: protocol.Node, ID: "liar"}
			if got := h.take("liar", c.m); got != c.may || (delivered == 1) != c.may {
				t.Errorf("taken %v, %d delivered; want %v", got, delivered, c.may)
			}
		})
	}
}

// All that nodes say to zones and gates is let through.
func TestWhatNodesSay(t *testing.T) {
	for _, k := range []protocol.Kind{
		protocol.Granted, protocol.Refused, protocol.Leased, protocol.RedeemRefused, protocol.Running, protocol.Report, protocol.Result,
		protocol.Extended, protocol.Published, protocol.Room, protocol.Parting, protocol.Announce, protocol.Told,
	} {
		if !allowed("n", &protocol.Message{Kind: k, From: nodeN, To: zone}) {
			t.Errorf("kind %d is dropped", k)
		}
	}
}

// A machine speaks of tokens of its own: they are easy to guess, and a Result would end another's subjob.
func TestTokensOfOthers(t *testing.T) {
	own, other := job.Token{Epoch: 1, Seq: 7}, job.Token{Epoch: 1, Seq: 8}
	h := NewHead(HeadOptions{Owns: func(name job.NodeID, t job.Token) bool { return name == "n" && t == own }})
	if err := h.Attach(zone, func(protocol.Message) {}); err != nil {
		t.Fatal(err)
	}
	place := func(x job.Token) protocol.Place {
		return protocol.Place{Token: x, Node: "n", Slice: protocol.Slice{ID: "n/gpu0"}}
	}
	for _, x := range []job.Token{{}, own, other} {
		for _, m := range []protocol.Message{
			{Kind: protocol.Result, Token: x, Body: &protocol.Conclusion{}},
			{Kind: protocol.Probed, Body: &protocol.Response{Place: new(place(x))}},
			{Kind: protocol.Winning, Body: &protocol.Prize{Place: place(x)}},
			{Kind: protocol.Winning, Token: x, Body: &protocol.Prize{Place: place(own)}},
		} {
			m.From, m.To = nodeN, zone
			if got := h.take("n", m); got != (x != other) {
				t.Errorf("kind %d about token %v: taken %v", m.Kind, x, got)
			}
		}
	}
}
