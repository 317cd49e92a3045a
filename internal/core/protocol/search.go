package protocol

import (
	"time"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// The search for a place (mechanism laminar). None of these messages is repeated: a ticket that is lost is missed by its home, a probe
// without an answer counts as refused.
const (
	// Search sends a job's ticket to a zone that was drawn for it: Job, Body (*Errand). Gate -> zone.
	Search Kind = iota + 144
	// Redraw asks for another zone to search in: Job, Body (*Errand). Zone -> gate.
	Redraw
	// Back is a search that is over without a place: Job, Body (*Errand; its ticket is Parked or Expired, and says why). Zone or gate ->
	// home.
	Back
	// Landing is a place that was granted: Job, Body (*Finding). Zone -> home.
	Landing
	// Probe asks a node for a place: Job, Generation, Body (*Inquiry). Zone -> node.
	Probe
	// Probed answers it: Job, Body (*Response). Node -> zone.
	Probed
	// Room: the node has refused a probe since its last report, or knows that tickets wait, and has more room now: Body (*flow.Summary).
	// Node -> zone.
	Room
	// LetGo gives a grant back that is of no use: Job, Token. Home -> node.
	LetGo
	// ZoneDigest is what a zone says of itself: Body (*flow.Digest). Zone -> gate.
	ZoneDigest
)

// Errand is a ticket under way, with what its home wants for it.
type Errand struct {
	flow.Ticket
	Generation job.Generation
	// Least and Most is the time that the job could use: no less than that, no more than this; NoEnd: time without an end.
	Least, Most time.Duration
}

// NoEnd is the time that a job without a walltime needs.
const NoEnd = time.Duration(1<<63 - 1)

// Inquiry is a ticket's question to a node, with the episode and the hop that it belongs to.
type Inquiry struct {
	flow.Probe
	Episode     uint16
	Hop         uint8
	Least, Most time.Duration
	// Short: tickets wait in the zone for room, so that the node is to say when it has more (Room).
	Short bool
}

// Response is a node's answer: a place if one was granted, and in any case what is free there now.
type Response struct {
	Ticket  flow.TicketID
	Home    flow.ZoneID
	Episode uint16
	Hop     uint8
	// Place is nil if the probe was refused.
	Place *Place
	Room  flow.Summary
}

// Place is time on a slice that a node holds for a ticket.
type Place struct {
	Token job.Token
	Node  job.NodeID
	Slice Slice
	// Start and End of the held time, which lapses at Expiry by the node's clock.
	Start, End, Expiry quantity.Instant
}

// Finding is a place that a ticket has found in a zone.
type Finding struct {
	Errand Errand
	Place  Place
}

// Body marks what is sent.
func (*Errand) Body()   {}
func (*Inquiry) Body()  {}
func (*Response) Body() {}
func (*Finding) Body()  {}
