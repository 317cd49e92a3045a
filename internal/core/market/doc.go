// Package market is the floor: where windows of idle slice-time are offered, asked for and cleared, as SJA (arXiv 2509.19086: jobs signal
// interest and a policy picks) or as JASDA (arXiv 2510.14599: jobs bid with variants). A Floor is a part of an actor that embeds it, such
// as a zone: it is deterministic, and all that it keeps is soft. It must not know durable state, owners of jobs or slices, claims, nodes or
// journals: it knows three contracts.
//
//   - window.Supply is a slice as its owner answers for it: its unsold gaps, of which windows are made.
//   - index.Demand is a job as its owner answers for it: a view, from which its atomizer answers at once; an agent answers in messages.
//   - award.Seller takes what is won: a piece to ask a node for, and the purse that it is paid from.
//
// Its owner reports what changes (Activate, Retire, Changed, InvalidateJob; Place, InvalidateSlice; Turning for what changes with time
// alone), and then calls Sell. Its parts, each in a folder below it, from the bottom up:
//
//	explain               why jobs wait, counted, and which jobs they lost to
//	window                which idle time of which slices is offered, and what became of it
//	index                 the shortest window that each job can use, and who is first for one
//	starvation, lateness  when a job is late (glossary), and what it is given before others
//	variant, trust        what must be true of a variant, and how far declarations are believed
//	award                 what a job has won, and who takes it
//	agents                calls to the agents of external jobs, and their answers
//	interest              mechanism sja: the first by policy who has a safe piece gets it
//	clearing, auction     mechanism jasda: whose bids are worth most
//
// Which mechanism runs is decided once (NewFloor), behind Mechanism. Here are the composition, and the views for people beyond counts: a
// job's place in the policy's order (rank.go), and the answers to each window (look.go).
package market
