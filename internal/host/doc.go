// Package host is the live shell around the actors of one process: a daemon without its network face. Folder loop drives the actors; each
// other folder is a part with a state of its own, and says which goroutine that belongs to. Nothing here takes a scheduling decision.
//
// What it promises: no effect leaves before the facts of its step are durable; what Append did not take is kept and
// tried again when the disk was full, and stops the daemon otherwise; recovery applies facts and decides nothing again.
package host
