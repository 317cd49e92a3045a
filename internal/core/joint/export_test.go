package joint

// Pairs is how many there were, older ones counted less.
func (l *Learner) Pairs() int64 { return l.pairs }
