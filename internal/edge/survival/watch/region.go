package watch

// region is the shared memory: a head, the table, the board and the ring. One daemon writes the table, one watcher the rest.
type region struct {
	head  words
	table pair
	board pair
	ring  ring
}

// Words of the head. Each is written by one side.
const (
	headMagic = iota
	// headBeat is when the daemon last said that it lives, by CLOCK_MONOTONIC, as headPulse is; headOrder is not 0 where no watcher is
	// wanted.
	headBeat
	headOrder
	// headRead is the number of the act to read next.
	headRead
	// headLife is the watcher's, once it can be relied upon and until it ends in order; its process, when it last looked, and what it has
	// to do without.
	headLife
	headPID
	headStarted
	headPulse
	headLacks
	headTable
	headBoard
	headRing
	// headBoot names the start of the machine that all of it is of, headKind the kind of survival of the last life.
	headBoot
	headKind
	headSize = 512 // a page, so that all else begins on one
)

// magic names the format: what has another one is made anew.
const magic = 0x736c756963650001

const regionWords = headSize + 2*(front+tableWords) + 2*(front+boardWords) + ringWords

// divide lays a region over words.
func divide(w words) *region {
	at := headSize
	cut := func(n int) words {
		at += n
		return w.part(at-n, at)
	}
	one := func(i int) words { return w.part(i, i+1) }
	return &region{
		head:  w.part(0, headSize),
		table: pair{number: one(headTable), places: [2]words{cut(front + tableWords), cut(front + tableWords)}},
		board: pair{number: one(headBoard), places: [2]words{cut(front + boardWords), cut(front + boardWords)}},
		ring:  ring{next: one(headRing), slots: cut(ringWords)},
	}
}
