package protocol

// Body is what a message says beyond its header: a pointer to a struct that nobody writes to once it is sent. A kind's comment names
// the type that goes with it; a kind without one has no body. Another type is a bug of ours, and damage where it is read from a tape
// (package wire has the table).
//
// The method marks a type as one that is meant to be sent. It is exported so that other packages of the core can have bodies.
type Body interface{ Body() }
