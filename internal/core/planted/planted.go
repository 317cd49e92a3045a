// Package planted holds bugs that we put in on purpose, to prove that the kill soak or a test sees them. In an ordinary build
// every question here is the constant false and the compiler removes the bug. With the build tag `planted` the
// environment variable SLUICE_PLANTED, read by the programs and not here, names the one that is in.
package planted

// Bug names one planted bug.
type Bug string

// The bugs. Each comment says which promise it breaks.
const (
	// SkipSync acknowledges records before they are written; a kill in between loses them. (journal)
	SkipSync Bug = "skip-sync"
	// AckBeforeFacts lets effects leave a step before its facts are appended. (host)
	AckBeforeFacts Bug = "ack-before-facts"
	// ReuseToken forgets the boot epoch and starts its sequence anew, so that tokens come again. (node)
	ReuseToken Bug = "reuse-token"
	// CommitWithoutClaim gives claims up at a restart and publishes their results all the same. (home)
	CommitWithoutClaim Bug = "commit-without-claim"
	// SellTwice does not take claimed work off the market. (home)
	SellTwice Bug = "sell-twice"
	// SellBeforeGone reports the end of a subjob before the last of its processes is gone. (supervisor)
	SellBeforeGone Bug = "sell-before-gone"
	// OfferBeforeFound offers slices at boot before the subjobs of earlier boots are matched. (node)
	OfferBeforeFound Bug = "offer-before-found"
	// IgnoreDeadline lets a subjob run past the end of its lease. (supervisor)
	IgnoreDeadline Bug = "ignore-deadline"
	// LookBeforeEnd has the end of a lease wait for a look at a subjob's processes. (supervisor)
	LookBeforeEnd Bug = "look-before-end"
	// OrphanTree leaves the process tree alive when its supervisor dies. (supervisor)
	OrphanTree Bug = "orphan-tree"
	// TrustProgress counts progress without a whole checkpoint, and beyond what was done. (home)
	TrustProgress Bug = "trust-progress"
	// PublishLosers publishes the output of subjobs that were not committed. (executor)
	PublishLosers Bug = "publish-losers"
	// ForgetCommit does not record what it commits. (home)
	ForgetCommit Bug = "forget-commit"
	// StaleCheckpoint resumes from the first checkpoint for ever. (home)
	StaleCheckpoint Bug = "stale-checkpoint"
	// FinishUnpublished calls a job finished before the output of its last subjobs is in its place. (home)
	FinishUnpublished Bug = "finish-unpublished"
	// WaitCancelled has a cancelled job wait for its subjobs, their nodes and stores for as long as these take. (home)
	WaitCancelled Bug = "wait-cancelled"
	// WaitEnding has a job that is to end wait for its subjobs until their leases are over. (home)
	WaitEnding Bug = "wait-ending"
	// WaitUnpublished has a job wait for its output to be published for as long as that takes. (home)
	WaitUnpublished Bug = "wait-unpublished"
	// PublishAll publishes a subjob's whole range where only a part was committed. (home)
	PublishAll Bug = "publish-all"
	// ResultBeforeSync writes a subjob's result before its output is synced; a power cut in between loses it. (supervisor)
	ResultBeforeSync Bug = "result-before-sync"
	// TellBeforeLasting tells a result before the name of its run directory is synced; a power cut loses it. (executor)
	TellBeforeLasting Bug = "tell-before-lasting"
	// PublishReleased publishes the late result of a claim that was released, whose work was sold again. (home)
	PublishReleased Bug = "publish-released"
	// ForgetPast leaves out of a snapshot what all but the last settled subjob committed. (home)
	ForgetPast Bug = "forget-past"
	// OlderOffer lets a view of a slice that was overtaken replace the newer one. (zone)
	OlderOffer Bug = "older-offer"
	// PublishSkipped answers the repeated result of a skipped unit as if it had been committed. (home)
	PublishSkipped Bug = "publish-skipped"
	// ForgetPledged bids with credits that unanswered asks will take. (home)
	ForgetPledged Bug = "forget-pledged"
	// ForgetWait counts a job as served by a subjob that never ran. (home)
	ForgetWait Bug = "forget-wait"
	// IgnorePriority leaves a job's priority out of its bids. (market)
	IgnorePriority Bug = "ignore-priority"
	// DiscardAnyLife lets the purge of an earlier life of a job remove what is filed of a later one. (archive)
	DiscardAnyLife Bug = "discard-any-life"
	// AnswerUnfiled lets actors forget jobs that the archive has not made durable. (host)
	AnswerUnfiled Bug = "answer-unfiled"
	// ShowEarlierLife shows an archived job whatever life its record is of. (host)
	ShowEarlierLife Bug = "show-earlier-life"
	// DropBeforeSync removes what a snapshot covers before the snapshot is durable. (journal)
	DropBeforeSync Bug = "drop-before-sync"
	// TornCapture lets a part change before a running capture has its facts: they would be of two instants. (capture)
	TornCapture Bug = "torn-capture"
	// LeaveUnconfirmed lets go of a job that is over before the archive has it. (gate)
	LeaveUnconfirmed Bug = "leave-unconfirmed"
	// ForgetRecall does not ask the archive for a job that is to run again. (gate)
	ForgetRecall Bug = "forget-recall"
	// ForgetClosing says a verdict once, whether or not the gate confirms it. (home)
	ForgetClosing Bug = "forget-closing"
	// LeaveUnpublished lets go of a cancelled job whose output is not in its place yet. (home)
	LeaveUnpublished Bug = "leave-unpublished"
	// ForgetUntold leaves a job that waited for a farewell out of those whose home is to be told. (gate)
	ForgetUntold Bug = "forget-untold"
	// SkipCapture forgets the part that takes the place of a removed one behind the capture's back. (capture)
	SkipCapture Bug = "skip-capture"
	// SkipTie goes on behind every job that shares its instant of submission with the last one of a page. (home)
	SkipTie Bug = "skip-tie"
	// ForgetStale leaves what a job answers to windows in the index as it was before its subjob went on. (home)
	ForgetStale Bug = "forget-stale"
	// KeepUnsold leaves the free time of a slice as it was before a reservation there was refused. (backfill)
	KeepUnsold Bug = "keep-unsold"
	// KeepOpenings leaves the openings of a node as they were before its time became another. (backfill)
	KeepOpenings Bug = "keep-openings"
	// ForgetPhase leaves a paused job in the list, and the count, of those that wait. (home)
	ForgetPhase Bug = "forget-phase"
	// ForgetStir leaves the alarm of a lease as it was before the lease changed. (node)
	ForgetStir Bug = "forget-stir"
	// ReverseVictims has the highest in the order of survival hit first. (airlock)
	ReverseVictims Bug = "reverse-victims"
	// ForgetOwed takes what was ended for having brought nothing until its host shows it. (airlock)
	ForgetOwed Bug = "forget-owed"
	// ForgetResuming has who is suspended go on into the room of who goes on already. (airlock)
	ForgetResuming Bug = "forget-resuming"
	// IgnoreParked moves memory out beyond what may be outside at once. (airlock)
	IgnoreParked Bug = "ignore-parked"
	// GiveUpLooking ends a search at its bound before anything was found. (reclaim)
	GiveUpLooking Bug = "give-up-looking"
	// StopBegun stops what was to be stopped only if it had not begun. (node)
	StopBegun Bug = "stop-begun"
	// EarlierTerms takes a lender's answer to terms that have changed since. (loan)
	EarlierTerms Bug = "earlier-terms"
	// KeepMoved has a gang that gave its places back wait for an earlier start as if it had asked for one of those it has now. (loan)
	KeepMoved Bug = "keep-moved"
	// PutUnsynced gives an object its name before its bytes are on the disk; a power cut leaves a whole name of nothing. (store)
	PutUnsynced Bug = "put-unsynced"
	// ForgetTimer lets an entry of Airlock stand for good where the executor is silent. (node)
	ForgetTimer Bug = "forget-timer"
	// KeepShort leaves a node short of memory for good once its executor is silent. (node)
	KeepShort Bug = "keep-short"
	// StayFrozen leaves a subjob standing still for which nobody answers any more. (supervisor)
	StayFrozen Bug = "stay-frozen"
	// BlameReclaimed has a subjob fail that the machine's watcher has ended. (supervisor)
	BlameReclaimed Bug = "blame-reclaimed"
	// HalfGang lets the members of a gang run on when one has failed, or never began. (home)
	HalfGang Bug = "half-gang"
	// SettleHalf settles the claim of a gang while members of it still run. (home)
	SettleHalf Bug = "settle-half"
	// KeepHolds leaves what nodes hold for a gang that another refused. (home)
	KeepHolds Bug = "keep-holds"
	// FirstMember asks no member of a gang again once the first runs. (home)
	FirstMember Bug = "first-member"
	// KeepQuarantine leaves a slice quarantined when the last of the processes that were the reason is gone. (node)
	KeepQuarantine Bug = "keep-quarantine"
	// SellRemaining gives a claim up although its node says that processes of it are there. (home)
	SellRemaining Bug = "sell-remaining"
	// KeepRaised leaves a claim with the peak that it was to have, had its node not refused to extend it. (home)
	KeepRaised Bug = "keep-raised"
	// RenewLate gives an operator's lease up so late that another may begin while it still works. (operator)
	RenewLate Bug = "renew-late"
	// KeepGuests keeps what a zone has lent to a gang whose home is silent. (zone)
	KeepGuests Bug = "keep-guests"
)

// Bugs lists those that the kill soak must see (make planted). The tests of a package must see the others (make mutants).
func Bugs() []Bug {
	return []Bug{
		SkipSync, AckBeforeFacts, ReuseToken, CommitWithoutClaim, SellTwice, SellBeforeGone, OfferBeforeFound,
		IgnoreDeadline, OrphanTree, TrustProgress, PublishLosers, ForgetCommit, StaleCheckpoint, PublishAll,
	}
}
