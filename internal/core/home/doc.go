// Package home is the ledger of the jobs that are at home in one place: what of each is committed and claimed, what was learned of
// it, how it ends, and what its queue has had. Durable state changes only in Apply; the rest (leases that nodes confirmed, unanswered
// asks, alarms, back-off) is soft and forgotten by a crash.
//
// It knows neither floor, planner nor slice: whoever embeds it is told what changes (Watcher) and answers for the slices (Supply). It
// knows no clock, no store and no transport.
package home
