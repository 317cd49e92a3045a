package reclaim

// want is one request, with the number of its claim: constraints hold within a claim.
type want struct {
	choices []Choice
	claim   int
}

// demand is what one wish needs on a machine.
type demand struct {
	id    ID
	who   string
	equiv Equiv
	asks  []Ask
	wants []want
	where *Where
	// claims are the shared claims that get their devices with this demand. on is the machine where its other shared claims get theirs;
	// empty: any machine.
	claims []string
	on     string
}

// exact reports whether the search of one machine compares all places on it: one resource or devices, each request with one choice.
func (q *demand) exact() bool {
	if len(q.asks) > 1 || len(q.asks) > 0 && len(q.wants) > 0 {
		return false
	}
	for _, w := range q.wants {
		if len(w.choices) != 1 || w.choices[0].N > maxDevices {
			return false
		}
	}
	return true
}

// empty reports whether it needs nothing that is offered here.
func (q *demand) empty() bool { return len(q.wants)+len(q.asks) == 0 }
