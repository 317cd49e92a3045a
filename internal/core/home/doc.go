// Package home is the ledger of the jobs that are at home in one place. It is composed of the book of their records (home/record), which
// changes by facts alone, of the Claimer that sells what they have won (home/claims), and of the Settler of what was sold (home/settle). It
// decides itself which life of a job is here: how jobs come, begin another life, leave and are forgotten. What is not durable (leases that
// nodes confirmed, unanswered asks, alarms, back-off) is forgotten by a crash.
//
// It knows neither floor, planner nor slice: its owner is told what changes (Watcher) and answers for the slices (Supply). It knows no
// clock, no store and no transport.
package home
