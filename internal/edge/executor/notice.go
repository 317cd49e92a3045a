package executor

import "sluice.dev/sluice/internal/core/quantity"

// What is done to a running subjob (Notice.Kind). Its program reads these words.
const (
	// NoticeYield: it has been asked to end by Until, and SIGTERM with it.
	NoticeYield = "yield"
	// NoticeTruncated: its lease ends at Until, which is earlier than was promised. SIGTERM has not come yet.
	NoticeTruncated = "truncated"
	// NoticeSuspended: it stands still since its node is short of memory. It reads this once it goes on, or in what of it goes on.
	NoticeSuspended = "suspended"
	// NoticeResumed: it stood still, and goes on. Its lease did not wait.
	NoticeResumed = "resumed"
)

// Notice is what was done to a running subjob, as its program reads it in the file that SLUICE_NOTICE_FILE names. The file is
// replaced whole, says only what holds now, and is not there while nothing was done, or once that was taken back.
type Notice struct {
	// Sequence numbers what one subjob is told, from 1. Where one is missing the program did not look in between.
	Sequence int64
	Kind     string
	// Until is when the subjob is killed if it still runs, whatever was done.
	Until quantity.Instant
	// Why, for people.
	Why string
}
