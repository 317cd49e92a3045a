package twin_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// transcript is a story in text: every message that an actor hears, and the facts and messages that come of it, in order. Fields
// that are zero are left out, so that a new one shows only where it is used; times are since the start of the story.
type transcript struct{ text strings.Builder }

// record writes down what an actor makes of a message; in is nil for what it says when it comes up.
func (t *transcript) record(now quantity.Instant, self protocol.Address, in *protocol.Message, out *protocol.Out, step func()) {
	heard := "comes up"
	if in != nil {
		heard = "<- " + party(in.From) + ": " + heardAs(in)
	}
	facts, effects := len(out.Facts), len(out.Effects)
	step()
	fmt.Fprintf(&t.text, "%v %s %s\n", now.Sub(storyStart), party(self), heard)
	for _, f := range out.Facts[facts:] {
		t.text.WriteString("  fact " + recorded(&f) + "\n")
	}
	for i := range out.Effects[effects:] {
		m := &out.Effects[effects+i]
		fmt.Fprintf(&t.text, "  -> %s: %s\n", party(m.To), spoken(m))
	}
}

func party(a protocol.Address) string {
	name := nameOf(roleNames, uint8(a.Role))
	if a.ID != "" {
		name += " " + a.ID
	}
	return name
}

// fields writes what is not zero of a struct, but for some.
func fields(v reflect.Value, but ...string) string {
	var b strings.Builder
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if v.Field(i).IsZero() || slices.Contains(but, name) {
			continue
		}
		field := v.Field(i)
		if of := v.FieldByName("Job"); name == "Spec" && of.IsValid() {
			field = of // whose spec it is: the story has it
		}
		fmt.Fprintf(&b, " %s=%s", strings.ToLower(name), value(field))
	}
	return b.String()
}

func value(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case quantity.Instant:
		if x == quantity.Never {
			return "never"
		}
		return x.Sub(storyStart).String()
	case time.Duration:
		return x.String()
	case protocol.Slice:
		return string(x.ID)
	case trp.Vector:
		return fmt.Sprintf("%dMiB", x[trp.Memory]>>20)
	case job.Token:
		return fmt.Sprintf("%d.%d", x.Epoch, x.Seq)
	case job.Range:
		return fmt.Sprintf("[%d,%d)", x.From, x.To)
	case error:
		return fmt.Sprintf("%q", x)
	case protocol.ReservationKind:
		return x.String()
	case protocol.NoticeKind:
		return x.String()
	case job.Outcome:
		return x.String()
	case job.State:
		return x.String()
	}
	switch v.Kind() {
	case reflect.Pointer:
		return value(v.Elem())
	case reflect.Struct:
		return "{" + strings.TrimSpace(fields(v)) + "}"
	case reflect.Slice, reflect.Array:
		var parts []string
		for i := range v.Len() {
			parts = append(parts, value(v.Index(i)))
		}
		return "(" + strings.Join(parts, " ") + ")"
	case reflect.String:
		if s := v.String(); strings.ContainsAny(s, " \"") {
			return fmt.Sprintf("%q", s)
		}
		return v.String()
	}
	return fmt.Sprint(v.Interface())
}

func nameOf(names map[uint8]string, kind uint8) string {
	if n := names[kind]; n != "" {
		return n
	}
	return fmt.Sprint("kind ", kind)
}

var roleNames = map[uint8]string{
	uint8(protocol.Gate): "gate", uint8(protocol.Zone): "zone", uint8(protocol.Node): "node", uint8(protocol.Person): "person",
	uint8(protocol.Executor): "executor", uint8(protocol.Timer): "timer", uint8(protocol.Bidder): "agent",
}

var messageNames = map[uint8]string{
	uint8(protocol.Submit): "Submit", uint8(protocol.Cancel): "Cancel", uint8(protocol.PauseJob): "PauseJob",
	uint8(protocol.SetQueue): "SetQueue",
	uint8(protocol.Reply):    "Reply", uint8(protocol.Requeue): "Requeue", uint8(protocol.Delete): "Delete",
	uint8(protocol.DrainZone): "DrainZone",
	uint8(protocol.Reserve):   "Reserve", uint8(protocol.Unreserve): "Unreserve", uint8(protocol.Unquarantine): "Unquarantine",
	uint8(protocol.Adopt): "Adopt", uint8(protocol.Adopted): "Adopted", uint8(protocol.Closed): "Closed",
	uint8(protocol.ClosedAck):    "ClosedAck",
	uint8(protocol.QueueChanged): "QueueChanged", uint8(protocol.Forget): "Forget", uint8(protocol.Forgotten): "Forgotten",
	uint8(protocol.Surrender): "Surrender", uint8(protocol.Surrendered): "Surrendered",
	uint8(protocol.Offer): "Offer", uint8(protocol.Ask): "Ask", uint8(protocol.Granted): "Granted", uint8(protocol.Refused): "Refused",
	uint8(protocol.Redeem): "Redeem", uint8(protocol.Leased): "Leased", uint8(protocol.RedeemRefused): "RedeemRefused",
	uint8(protocol.Running): "Running", uint8(protocol.Report): "Report", uint8(protocol.Result): "Result",
	uint8(protocol.ResultAck): "ResultAck",
	uint8(protocol.Extend):    "Extend", uint8(protocol.Extended): "Extended", uint8(protocol.Stop): "Stop",
	uint8(protocol.Published): "Published", uint8(protocol.Removed): "Removed",
	uint8(protocol.Inventory): "Inventory", uint8(protocol.Start): "Start", uint8(protocol.Started): "Started",
	uint8(protocol.Exited): "Exited",
	uint8(protocol.Stuck):  "Stuck", uint8(protocol.Deadline): "Deadline", uint8(protocol.Settle): "Settle",
	uint8(protocol.Settled): "Settled",
	uint8(protocol.Foreign): "Foreign", uint8(protocol.Purge): "Purge", uint8(protocol.Wake): "Wake", uint8(protocol.Tick): "Tick",
	uint8(protocol.Purged): "Purged", uint8(protocol.Unhealthy): "Unhealthy", uint8(protocol.Wished): "Wished",
	uint8(protocol.Pressure): "Pressure", uint8(protocol.Suspend): "Suspend", uint8(protocol.Suspended): "Suspended",
	uint8(protocol.Resume): "Resume",
	uint8(protocol.Search): "Search", uint8(protocol.Redraw): "Redraw", uint8(protocol.Back): "Back", uint8(protocol.Landing): "Landing",
	uint8(protocol.Probe): "Probe", uint8(protocol.Probed): "Probed", uint8(protocol.Room): "Room", uint8(protocol.LetGo): "LetGo",
	uint8(protocol.ZoneDigest): "ZoneDigest",
	uint8(protocol.Lenders):    "Lenders", uint8(protocol.Borrow): "Borrow", uint8(protocol.Lent): "Lent",
	uint8(protocol.Visiting): "Visiting", uint8(protocol.Parting): "Parting", uint8(protocol.Winning): "Winning",
	uint8(protocol.Sighted): "Sighted", uint8(protocol.Ordered): "Ordered",
	uint8(protocol.Attend): "Attend", uint8(protocol.Announce): "Announce", uint8(protocol.Answer): "Answer", uint8(protocol.Told): "Told",
}

var factNames = map[uint8]string{
	uint8(protocol.JobAccepted): "JobAccepted", uint8(protocol.JobHomed): "JobHomed", uint8(protocol.JobClosed): "JobClosed",
	uint8(protocol.JobForgotten): "JobForgotten", uint8(protocol.QueueSet): "QueueSet", uint8(protocol.JobCancelling): "JobCancelling",
	uint8(protocol.JobPaused): "JobPaused", uint8(protocol.JobRequeued): "JobRequeued", uint8(protocol.JobPurged): "JobPurged",
	uint8(protocol.ZoneDrained): "ZoneDrained", uint8(protocol.Rehomed): "Rehomed", uint8(protocol.JobDeparted): "JobDeparted",
	uint8(protocol.HomeLeaving): "HomeLeaving",
	uint8(protocol.HomeTaken):   "HomeTaken", uint8(protocol.Claimed): "Claimed", uint8(protocol.ClaimExtended): "ClaimExtended",
	uint8(protocol.Released): "Released", uint8(protocol.Committed): "Committed", uint8(protocol.Calibrated): "Calibrated",
	uint8(protocol.Ended): "Ended", uint8(protocol.HomeDropped): "HomeDropped", uint8(protocol.HomePaused): "HomePaused",
	uint8(protocol.QueueKnown): "QueueKnown", uint8(protocol.HomeKept): "HomeKept", uint8(protocol.QueueCalibrated): "QueueCalibrated",
	uint8(protocol.Taught): "Taught", uint8(protocol.HomeReopened): "HomeReopened", uint8(protocol.OutputPublished): "OutputPublished",
	uint8(protocol.Booted): "Booted", uint8(protocol.LeaseMade): "LeaseMade", uint8(protocol.LeaseExtended): "LeaseExtended",
	uint8(protocol.Truncated): "Truncated", uint8(protocol.SubjobStarted): "SubjobStarted", uint8(protocol.SubjobEnded): "SubjobEnded",
	uint8(protocol.ResultSettled): "ResultSettled", uint8(protocol.LeaseGone): "LeaseGone",
	uint8(protocol.ReservationMade): "ReservationMade",
	uint8(protocol.ReservationGone): "ReservationGone", uint8(protocol.Quarantined): "Quarantined",
	uint8(protocol.QuarantineLifted): "QuarantineLifted",
	uint8(protocol.SubjobVacated):    "SubjobVacated",
}

// The actors of a story with their transcripts.
type (
	gateScribe struct {
		actor.Gate
		of *transcript
	}
	zoneScribe struct {
		actor.Zone
		self protocol.Address
		of   *transcript
	}
	nodeScribe struct {
		actor.Node
		self protocol.Address
		of   *transcript
		// answers deals with a message in the node's place, or does not.
		answers func(now quantity.Instant, in *protocol.Message, out *protocol.Out) bool
	}
)

var gateAddress = protocol.Address{Role: protocol.Gate}

// scribed are actors whose words go into a transcript.
func scribed(a actor.Set, script *transcript, answers func(now quantity.Instant, in *protocol.Message, out *protocol.Out) bool) actor.Set {
	set := actor.Set{Gates: actor.OneGate(gateScribe{a.Gates[0].Gate, script})}
	for _, z := range a.Zones {
		set.Zones = append(set.Zones, actor.ZoneAt{ID: z.ID,
			Zone: zoneScribe{z.Zone, protocol.Address{Role: protocol.Zone, ID: string(z.ID)}, script}})
	}
	for _, n := range a.Nodes {
		n.Node = nodeScribe{n.Node, protocol.Address{Role: protocol.Node, ID: string(n.ID)}, script, answers}
		set.Nodes = append(set.Nodes, n)
	}
	return set
}

func (s gateScribe) Step(now quantity.Instant, in protocol.Message, out *protocol.Out) {
	s.of.record(now, gateAddress, &in, out, func() { s.Gate.Step(now, in, out) })
}

func (s gateScribe) Recover(now quantity.Instant, out *protocol.Out) {
	s.of.record(now, gateAddress, nil, out, func() { s.Gate.Recover(now, out) })
}

func (s zoneScribe) Step(now quantity.Instant, in protocol.Message, out *protocol.Out) {
	s.of.record(now, s.self, &in, out, func() { s.Zone.Step(now, in, out) })
}

func (s zoneScribe) Recover(now quantity.Instant, out *protocol.Out) {
	s.of.record(now, s.self, nil, out, func() { s.Zone.Recover(now, out) })
}

func (s nodeScribe) Step(now quantity.Instant, in protocol.Message, out *protocol.Out) {
	s.of.record(now, s.self, &in, out, func() {
		if s.answers == nil || !s.answers(now, &in, out) {
			s.Node.Step(now, in, out)
		}
	})
}

func (s nodeScribe) Recover(now quantity.Instant, out *protocol.Out) {
	s.of.record(now, s.self, nil, out, func() { s.Node.Recover(now, out) })
}
