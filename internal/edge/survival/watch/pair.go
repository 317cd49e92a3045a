package watch

// pair is something that one side writes whole and the other reads whole, whoever is killed in between: two places that are written to in
// turn, and a word that says which one holds. That word moves once the new one is complete, so what a killed writer leaves
// half written nobody looks at. A reader that is overtaken by two writes sees it by the number, or by the sum, and looks again.
//
// There is one writer at a time (a lock sees to it, not this). Readers are many, and wait for nobody.
type pair struct {
	// number of the last one that was written, 0: none; places have its number, its length and its sum in front.
	number words
	places [2]words
}

// front is how many words stand in front of a place: its number, its length and its sum.
const front = 3

// write writes the next one. It must fit.
func (p *pair) write(of []uint64) {
	n := p.number.load(0) + 1
	place := p.places[n%2]
	place.store(0, 0)
	place.write(front, of)
	place.store(1, uint64(len(of)))
	place.store(2, sum(n, of))
	place.store(0, n)
	p.number.store(0, n)
}

// looks is how many times a reader tries: each time but the first it was overtaken.
const looks = 4

// read reads the last one into room, and returns it with its number; false: there is none, or none that is whole. room takes a whole
// place.
func (p *pair) read(room []uint64) (of []uint64, n uint64, ok bool) {
	for range looks {
		n = p.number.load(0)
		place := p.places[n%2]
		size := place.load(1)
		if n == 0 || place.load(0) != n || size > uint64(place.len()-front) || size > uint64(len(room)) {
			continue
		}
		of = room[:size]
		s := place.load(2)
		place.read(front, of)
		if place.load(0) == n && sum(n, of) == s {
			return of, n, true
		}
	}
	return nil, 0, false
}

// last is the number of the last one.
func (p *pair) last() uint64 { return p.number.load(0) }
