// Package pilots asks hosts for pilots and keeps count of them at a cluster's head. Each pool has a Driver: it looks at the host, tells the
// zone what it saw, and does what the zone orders (core/supply). It decides nothing of how many, how long or when.
//
// Who is counted: a pilot is in the ledger from before its host is asked for it until it is surely gone there. What the host may have and
// the ledger does not know can only be back from the dead (a host forgets an end) or from an older copy of the ledger: it is ended, and its
// token is withdrawn.
//
// What is written when, so that a crash at any point loses and doubles nothing: ask: ledger, token, host. Give back: ledger, token
// withdrawn, host, and again for as long as the host shows it. Ended: ledger, token withdrawn.
package pilots
