package reclaim

// want is one request, with the number of its claim: constraints hold within one.
type want struct {
	choices []Choice
	of      int
}

// quest is what one wish needs on a machine.
type quest struct {
	id    ID
	who   string
	kin   Kin
	asks  []Ask
	wants []want
	where *Where
	// claims get their devices through this quest. on is the machine where claims that it shares with others get theirs; empty: any
	// machine.
	claims []string
	on     string
}

// nothing reports whether it needs nothing that is offered here.
func (q *quest) nothing() bool { return len(q.wants)+len(q.asks) == 0 }
