package process

// Below are the processes of a subjob that are to go on.
var Below = below

// Kept is how many rooms there are for subjobs to come.
func (e *Executor) Kept() int { return e.rooms.Kept() }
