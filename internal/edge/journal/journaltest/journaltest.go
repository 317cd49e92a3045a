// Package journaltest is the conformance suite that every kind of journal must pass: what is acknowledged is there after
// any stop, full disk, power cut or damage, or its loss is named and refused; nothing is there twice. It must not know
// how a kind stores its records, only which files it has.
package journaltest

import (
	"testing"
)

// Run runs the whole suite.
func Run(t *testing.T, k Kind) {
	for name, test := range map[string]func(*testing.T, Kind){
		"EmptyIsEmpty":                 emptyIsEmpty,
		"RecordsComeBack":              recordsComeBack,
		"PositionsAreTheChain":         positionsAreTheChain,
		"SnapshotAndTail":              snapshotAndTail,
		"SnapshotBeside":               snapshotBeside,
		"WitnessesAreChecked":          witnessesAreChecked,
		"CallbackEndsReplay":           callbackEndsReplay,
		"ReplayComesFirst":             replayComesFirst,
		"TooLargeIsRefused":            tooLargeIsRefused,
		"SecondOpenIsRefused":          secondOpenIsRefused,
		"SizeGrowsAndShrinks":          sizeGrowsAndShrinks,
		"FullDiskAtAppend":             fullDiskAtAppend,
		"FullDiskAtSnapshot":           fullDiskAtSnapshot,
		"FlippedBits":                  flippedBits,
		"CutFiles":                     cutFiles,
		"MissingFiles":                 missingFiles,
		"ZeroedSectors":                zeroedSectors,
		"PowerCutAtEveryOperation":     powerCutAtEveryOperation,
		"KilledAndThenPowerCut":        killedAndThenPowerCut,
		"FullDiskAtSync":               fullDiskAtSync,
		"FailedSyncIsTheEnd":           failedSyncIsTheEnd,
		"AnyHistoryWithStopsAndDamage": anyHistory,
	} {
		t.Run(name, func(t *testing.T) { test(t, k) })
	}
}
