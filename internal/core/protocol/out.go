package protocol

import "sluice.dev/sluice/internal/core/quantity"

// Out is what a step produces: the caller's slices, appended to. Facts are durable before any effect leaves.
type Out struct {
	Facts   []Fact
	Effects []Message
	bodies
}

// Reset empties o and keeps its memory.
func (o *Out) Reset() { o.Facts, o.Effects = o.Facts[:0], o.Effects[:0] }

// bodies of the kinds that nearly every subjob takes, made several at a time and not used yet. A body is never used twice: whoever it was
// sent to may keep it.
type bodies struct {
	moments          stock[Moment]
	askings          stock[Asking]
	grants           stock[Grant]
	works            stock[Work]
	holdings         stock[Holding]
	beginnings       stock[Beginning]
	conclusions      stock[Conclusion]
	acknowledgements stock[Acknowledgement]
	inquiries        stock[Inquiry]
	responses        stock[Response]
	places           stock[Place]
	adoptions        stock[Adoption]
	receipts         stock[Receipt]
	closings         stock[Closing]
	settlements      stock[Settlement]
	acceptances      stock[Acceptance]
	takings          stock[Taking]
	sales            stock[Sale]
	claimEnds        stock[ClaimEnd]
	terms            stock[Terms]
	subjobEnds       stock[SubjobEnd]
}

// stock is a pool of values that are not given out yet.
type stock[T any] struct {
	left []T
	made int
}

// mostAtOnce are allocated together, once that many were needed: a few kept bodies keep no more than that alive.
const mostAtOnce = 64

// keep gives out room for a value, with the value in it.
func (s *stock[T]) keep(v T) *T {
	if len(s.left) == 0 {
		s.made = min(mostAtOnce, max(1, 2*s.made))
		s.left = make([]T, s.made)
	}
	p := &s.left[0]
	s.left = s.left[1:]
	*p = v
	return p
}

// Moment is the body of a Wake.
func (o *Out) Moment(at quantity.Instant) *Moment { return o.moments.keep(Moment{At: at}) }

// Asking is a body, as all of the following.
func (o *Out) Asking(b Asking) *Asking { return o.askings.keep(b) }

// Grant is a body.
func (o *Out) Grant(b Grant) *Grant { return o.grants.keep(b) }

// Work is a body.
func (o *Out) Work(b Work) *Work { return o.works.keep(b) }

// Holding is a body.
func (o *Out) Holding(b Holding) *Holding { return o.holdings.keep(b) }

// Beginning is a body.
func (o *Out) Beginning(b Beginning) *Beginning { return o.beginnings.keep(b) }

// Conclusion is a body.
func (o *Out) Conclusion(b Conclusion) *Conclusion { return o.conclusions.keep(b) }

// Acknowledgement is a body.
func (o *Out) Acknowledgement(b Acknowledgement) *Acknowledgement { return o.acknowledgements.keep(b) }

// Inquiry is a body.
func (o *Out) Inquiry(b Inquiry) *Inquiry { return o.inquiries.keep(b) }

// Place is a part of one.
func (o *Out) Place(p Place) *Place { return o.places.keep(p) }

// Adoption is a body.
func (o *Out) Adoption(b Adoption) *Adoption { return o.adoptions.keep(b) }

// Receipt is a body.
func (o *Out) Receipt(b Receipt) *Receipt { return o.receipts.keep(b) }

// Closing is a body.
func (o *Out) Closing(b Closing) *Closing { return o.closings.keep(b) }

// Settlement is a body.
func (o *Out) Settlement(b Settlement) *Settlement { return o.settlements.keep(b) }

// Response is a body.
func (o *Out) Response(b Response) *Response { return o.responses.keep(b) }

// Acceptance is the body of a fact.
func (o *Out) Acceptance(b Acceptance) *Acceptance { return o.acceptances.keep(b) }

// Taking is a body.
func (o *Out) Taking(b Taking) *Taking { return o.takings.keep(b) }

// Sale is a body.
func (o *Out) Sale(b Sale) *Sale { return o.sales.keep(b) }

// ClaimEnd is a body.
func (o *Out) ClaimEnd(b ClaimEnd) *ClaimEnd { return o.claimEnds.keep(b) }

// Terms is a body.
func (o *Out) Terms(b Terms) *Terms { return o.terms.keep(b) }

// SubjobEnd is a body.
func (o *Out) SubjobEnd(b SubjobEnd) *SubjobEnd { return o.subjobEnds.keep(b) }
