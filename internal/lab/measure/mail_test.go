package measure_test

import (
	"slices"
	"testing"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/wire"
	"sluice.dev/sluice/internal/lab/measure"
)

func TestMailIsCountedByKind(t *testing.T) {
	var none *measure.Mail
	if none.List() != nil {
		t.Error("nobody counts, and something was counted")
	}
	var m measure.Mail
	adopted, running := protocol.Message{Kind: protocol.Adopted, Job: "a"}, protocol.Message{Kind: protocol.ClosedAck, Job: "longer"}
	for _, of := range []*protocol.Message{&running, &adopted, &running} {
		m.Count(of)
	}
	bytes := func(of *protocol.Message) int64 { return int64(len(wire.AppendMessage(nil, of))) }
	want := []measure.Mailed{{Kind: "ClosedAck", Count: 2, Bytes: 2 * bytes(&running)}, {Kind: "Adopted", Count: 1, Bytes: bytes(&adopted)}}
	if got := m.List(); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
