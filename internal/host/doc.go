// Package host is the live shell around the three actors of one process. One goroutine owns them: it takes a batch of
// inputs, steps, syncs the facts of the whole batch, and only then lets effects leave. It takes no scheduling decision
// and must not look into what messages mean beyond where they go.
//
// What it promises: no effect leaves before the facts of its step are durable; what Append did not take is kept and
// tried again when the disk was full, and stops the daemon otherwise; recovery applies facts and decides nothing again.
package host
