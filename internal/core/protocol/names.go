package protocol

import "fmt"

// NameOf is what the code calls a kind of message, for tables of what is sent.
func NameOf(k Kind) string {
	if name, known := kindNames()[k]; known {
		return name
	}
	return fmt.Sprintf("kind %d", k)
}

// kindNames has every kind; package wire's tests hold it to those that can be encoded.
func kindNames() map[Kind]string {
	return map[Kind]string{
		File: "File", Archived: "Archived", Outdated: "Outdated", Lenders: "Lenders", Borrow: "Borrow", Lent: "Lent",
		Submit: "Submit", Cancel: "Cancel", PauseJob: "PauseJob", SetQueue: "SetQueue", Reply: "Reply", Requeue: "Requeue",
		Delete: "Delete", DrainZone: "DrainZone", Reserve: "Reserve", Unreserve: "Unreserve", Unquarantine: "Unquarantine",
		Adopt: "Adopt", Adopted: "Adopted", Closed: "Closed", ClosedAck: "ClosedAck", QueueChanged: "QueueChanged", Forget: "Forget",
		Forgotten: "Forgotten", Surrender: "Surrender", Surrendered: "Surrendered", Offer: "Offer", Ask: "Ask", Granted: "Granted",
		Refused: "Refused", Redeem: "Redeem", Leased: "Leased", RedeemRefused: "RedeemRefused", Running: "Running", Report: "Report",
		Result: "Result", ResultAck: "ResultAck", Extend: "Extend", Extended: "Extended", Stop: "Stop", Published: "Published",
		Removed: "Removed", Inventory: "Inventory", Start: "Start", Started: "Started", Exited: "Exited", Stuck: "Stuck",
		Deadline: "Deadline", Settle: "Settle", Settled: "Settled", Foreign: "Foreign", Purge: "Purge", Wake: "Wake", Tick: "Tick",
		Purged: "Purged", Unhealthy: "Unhealthy", Pressure: "Pressure", Suspend: "Suspend", Suspended: "Suspended", Resume: "Resume",
		Checkup: "Checkup", Wished: "Wished", Dismiss: "Dismiss", Dismissed: "Dismissed", Attend: "Attend", Announce: "Announce",
		Answer: "Answer", Told: "Told", Search: "Search", Redraw: "Redraw", Back: "Back", Landing: "Landing", Probe: "Probe",
		Probed: "Probed", Room: "Room", LetGo: "LetGo", ZoneDigest: "ZoneDigest", Sighted: "Sighted", Ordered: "Ordered",
		Visiting: "Visiting", Parting: "Parting", Winning: "Winning",
	}
}
