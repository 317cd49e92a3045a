// Package market is the floor: where windows of idle slice-time are offered, asked for and cleared, as SJA (arXiv 2509.19086: jobs
// signal interest and a policy picks) or as JASDA (arXiv 2510.14599: jobs bid with variants). A Floor is a part of an actor that
// embeds it, such as a zone: it is deterministic, and all that it keeps is soft. It must not know what is durable, who owns a job
// or a slice, what a claim, a node or a journal is: it knows three contracts (contract.go).
//
//   - Supply is a slice as its owner answers for it: its unsold gaps. The floor makes windows of them.
//   - Demand is a job as its owner answers for it: a view, which its atomizer answers from at once; an agent answers in messages.
//   - Sale is what is won: a piece for a node to be asked for, and the purse that it is paid from.
//
// Whoever embeds it says what changes (Activate, Retire, Changed, InvalidateJob; Place, InvalidateSlice, EndedEarly; Turning for
// what changes with time alone), and then has it Sell. What is where:
//
//	floor.go        Floor, and Sell: one pass over what has changed
//	contract.go     Supply, Demand, Sale and the Piece that is sold
//	job.go slice.go what the floor keeps of a job and of a slice, how they come and go, and the order of slices (Place)
//	windows.go      windows from gaps, and when they open and close
//	class.go        slices that are alike to every job
//	eligibility.go  the index: for each job and class the shortest window it can use, ranked by the policy (package ranking)
//	audience.go     who is invited to a window (mechanism jasda)
//	interest.go     a round of mechanism sja: the first by policy wins
//	quiet.go        one pass of it over the windows: which slices need no look
//	rounds.go       rounds of mechanism jasda: which windows are offered, in which order, and repack
//	skip.go         rounds without a taker: windows that no changed job could use are counted, and no job is asked
//	agents.go       calls to the agents of external jobs, and their answers
//	bids.go verify.go  variants: proposed, verified, calibrated, scored
//	quote.go book.go   what a job proposes in windows without a known end, kept until something of it changes
//	late.go            who has waited too long, and what is given to them before others (package starvation)
//	sift.go            which of it can win
//	clear.go settle.go who wins (package clearing), what it costs, what is sold now and what is planned
//	continue.go     who would get the window behind a running subjob
//	fit.go          a job against a gap
//	tally.go counts.go losses.go answers.go rank.go  what people are told
//	plain.go        the same decisions without an index, for tests
//
// Below it lie what bids are made of: clearing, score and trust; and starvation.
package market
