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
	Moments          stock[Moment]
	Askings          stock[Asking]
	Grants           stock[Grant]
	Works            stock[Work]
	Holdings         stock[Holding]
	Beginnings       stock[Beginning]
	Conclusions      stock[Conclusion]
	Acknowledgements stock[Acknowledgement]
	Inquiries        stock[Inquiry]
	Responses        stock[Response]
	Places           stock[Place]
	Adoptions        stock[Adoption]
	Receipts         stock[Receipt]
	Closings         stock[Closing]
	Settlements      stock[Settlement]
	Acceptances      stock[Acceptance]
	Takings          stock[Taking]
	Sales            stock[Sale]
	ClaimEnds        stock[ClaimEnd]
	Terms            stock[Terms]
	SubjobEnds       stock[SubjobEnd]
}

// stock is a pool of values that are not given out yet.
type stock[T any] struct {
	left []T
	made int
}

// mostAtOnce are allocated together, once that many were needed: a few kept bodies keep no more than that alive.
const mostAtOnce = 64

// Keep gives out room for a value, with the value in it.
func (s *stock[T]) Keep(v T) *T {
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
func (o *Out) Moment(at quantity.Instant) *Moment { return o.Moments.Keep(Moment{At: at}) }
