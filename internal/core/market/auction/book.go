package auction

import "sluice.dev/sluice/internal/core/market/index"

// book keeps quotes, and room for those that were. They are found through their jobs; what is asked for no longer gives way.
type book struct {
	quotes []*quote
	hand   int
	blanks []*quote
}

// looks is among how many quotes the one is chosen that gives way.
const looks = 8

// blank is a quote to be filled.
func (b *book) blank() *quote {
	n := len(b.blanks)
	if n == 0 {
		return &quote{}
	}
	q := b.blanks[n-1]
	b.blanks = b.blanks[:n-1]
	return q
}

// keep puts a quote in, of at most so many. It says no if all that it looks at were asked for in the same clearing.
func (b *book) keep(q *quote, most int) bool {
	if len(b.quotes) >= most {
		var oldest *quote
		for range min(looks, len(b.quotes)) {
			b.hand = (b.hand + 1) % len(b.quotes)
			if old := b.quotes[b.hand]; oldest == nil || old.clearing < oldest.clearing {
				oldest = old
			}
		}
		if oldest == nil || oldest.clearing == q.clearing {
			return false
		}
		at := &recordOf(oldest.job).quotes
		for *at != oldest {
			at = &(*at).next
		}
		*at = oldest.next
		b.strike(oldest)
	}
	q.at = len(b.quotes)
	b.quotes = append(b.quotes, q)
	return true
}

// strike takes a quote out that its job has no more.
func (b *book) strike(q *quote) {
	last := b.quotes[len(b.quotes)-1]
	b.quotes[q.at], last.at = last, q.at
	b.quotes[len(b.quotes)-1] = nil
	b.quotes = b.quotes[:len(b.quotes)-1]
	b.release(q)
}

// forget strikes all quotes of a job: it may answer otherwise now.
func (b *book) forget(j *index.Job) {
	for q := recordOf(j).quotes; q != nil; q = recordOf(j).quotes {
		recordOf(j).quotes = q.next
		b.strike(q)
	}
}

// release takes back the room of a quote that is in use no longer.
func (b *book) release(q *quote) {
	q.job, q.next = nil, nil
	b.blanks = append(b.blanks, q)
}
