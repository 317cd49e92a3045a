// Package protocol is what the three actors say: to each other, to the people and programs they serve, and to the
// world that runs subjobs. Everything an actor takes in and everything it asks for is a Message; everything durable it
// decides is a Fact. A message is a small header and a body with a type of its own for each kind; a fact is a flat value. A
// driver can carry, store, lose, double or delay them without knowing what they mean.
//
// Messages may be lost, doubled, delayed and reordered; receivers are idempotent by the ids named with each kind.
package protocol
