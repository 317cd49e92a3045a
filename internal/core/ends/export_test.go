package ends

// Theta is the share that may fail.
func (g *Guard) Theta() int64 { return g.level.Theta }

// Kinds is how many kinds of gaps there are curves of.
func (l *Learner) Kinds() int { return len(l.gaps.curves) }
