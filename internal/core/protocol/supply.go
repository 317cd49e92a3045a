package protocol

// Provider lends machines of one pool, by its name (host/pilots).
const Provider Role = Archive + 1

// Zone <-> provider. All of it is soft.
const (
	// Sighted: what is known of a pool of pilots: supply.Sight. Provider -> zone, and repeated.
	Sighted Kind = iota + 224
	// Ordered: what to do for the pool: supply.Order. Zone -> provider, in answer to each Sighted; obeyed once, and only if it answers the
	// newest.
	Ordered
)
