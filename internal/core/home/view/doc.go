// Package view answers what people ask about jobs, queues and windows: what a job is doing and why it waits, how it stands against
// others, when it is likely to start and to be over, what would become of one that is not submitted. It reads the ledger, and has the
// floor's, the planner's and the slices' answers by narrow contracts, which the zone implements; it changes nothing. What it costs is
// bounded: a page costs what its jobs do, and one look at slices and windows is shared by all that is asked at one instant.
package view
