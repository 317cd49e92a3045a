// Package remote puts what subjobs on other machines have left in the store of their head into the places where that of the head's own
// subjobs lies (docs/adr/0066-head-store.md). It must not know which of it counts: that is asked for by who calls.
package remote
