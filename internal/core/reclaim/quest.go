package reclaim

type want struct {
	choices []Choice
	of      int
}

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

func (q *quest) nothing() bool { return len(q.wants)+len(q.asks) == 0 }
