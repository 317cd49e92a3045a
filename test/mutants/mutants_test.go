// Package mutants proves tests: with each of the bugs below planted, the named test of its package must fail. They are bugs that
// every test once missed; the kill soak, which has a table of its own, does not see them or not soon.
package mutants

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/planted"
)

const (
	module = "sluice.dev/sluice/internal/"
	zone   = module + "core/zone"
	home   = module + "core/home"
	gate   = module + "core/gate"
	node   = module + "core/node"
	lock   = module + "core/airlock"
	gives  = module + "core/reclaim"
	loans  = module + "core/federation/loan"
	stores = module + "edge/store/files"
	runs   = module + "edge/executor/process"
	shims  = module + "edge/executor/shim/supervisor"
	filed  = module + "edge/archive/bolt"
	driver = module + "host"
	heads  = module + "face/operator"
	parts  = module + "core/capture"
	kept   = module + "edge/journal/memory"
)

// mutants says which test of which package sees which bug.
var mutants = map[planted.Bug]struct{ in, test string }{
	planted.LeaveUnconfirmed:  {gate, "TestAnArchivedJobAnswersAsAHotOne"},
	planted.ForgetRecall:      {gate, "TestAnArchivedJobAnswersAsAHotOne"},
	planted.LeaveUnpublished:  {home, "TestACancelledJobStaysUntilItsOutputIsThere"},
	planted.ForgetClosing:     {home, "TestARestartWithManyFinishedJobsIsQuiet"},
	planted.ForgetUntold:      {gate, "TestReplaceWaitsUntilTheFormerIsGone"},
	planted.ResultBeforeSync:  {runs, "TestAPowerCutTakesNothingThatCounts"},
	planted.TellBeforeLasting: {runs, "TestAPowerCutTakesNothingThatCounts"},
	planted.FinishUnpublished: {zone, "TestNobodyIsToldBeforeTheOutputIsThere"},
	planted.WaitCancelled:     {zone, "TestACancelIsFinalWithinAMinute"},
	planted.WaitEnding:        {zone, "TestAJobThatIsToEndDoesNotWaitForANodeThatIsOff"},
	planted.WaitUnpublished:   {zone, "TestAJobIsOverThoughItsOutputIsNeverConfirmed"},
	planted.PublishReleased:   {zone, "TestALateResultOfAReleasedClaimPublishesNothing"},
	planted.ForgetPast:        {zone, "TestASnapshotAnswersForEverySubjob"},
	planted.OlderOffer:        {zone, "TestAnOvertakenViewIsDropped"},
	planted.PublishSkipped:    {zone, "TestARepeatedResultOfASkippedUnitPublishesNothing"},
	planted.ForgetPledged:     {zone, "TestCreditsAreBidOnce"},
	planted.ForgetWait:        {zone, "TestWhatNeverRanIsNoService"},
	planted.SkipTie:           {zone, "TestAPageLeavesNobodyOut"},
	planted.ForgetStir:        {node, "TestStorm"},
	planted.ForgetResuming:    {lock, "TestWhoGoesOnTakesItsRoom"},
	planted.IgnoreParked:      {lock, "TestWhatIsOutsideTakesItsRoom"},
	planted.GiveUpLooking:     {gives, "TestWhereAllAreNeededAllAreStopped"},
	planted.StopBegun:         {node, "TestWhatHasBegunIsNotWithdrawn"},
	planted.EarlierTerms:      {loans, "TestWhatIsLateCountsForNothing"},
	planted.KeepMoved:         {loans, "TestWhatWasGivenBackIsForgotten"},
	planted.PutUnsynced:       {stores, "TestAnObjectIsSyncedBeforeItHasItsName"},
	planted.ForgetOwed:        {lock, "TestOwed"},
	planted.ReverseVictims:    {lock, "TestTheNextGivesWayAboveOneThatCannot"},
	planted.ForgetTimer:       {node, "TestAnEntryEndsWithinItsTimer"},
	planted.KeepShort:         {node, "TestAWordOfMemoryGrowsOld"},
	planted.StayFrozen:        {runs, "TestNobodyAnswersForWhatStandsStill"},
	planted.BlameReclaimed:    {runs, "TestAWatcherEndsASubjobAlone"},
	planted.KeepQuarantine:    {node, "TestAQuarantineEndsWithItsLastProcess"},
	planted.RenewLate:         {heads, "TestALeaseIsGivenUpWithTimeToStop"},
	planted.KeepRaised:        {home, "TestARefusedExtensionLeavesTheClaimAsItWas"},
	planted.SellRemaining:     {zone, "TestWhatOutlivesItsLeaseIsWaitedFor"},
	planted.LookBeforeEnd:     {shims, "TestTheEndWaitsForNoLook"},
	planted.HalfGang:          {zone, "TestAMemberThatFailsEndsTheOthers"},
	planted.SettleHalf:        {zone, "TestAMemberThatFailsEndsTheOthers"},
	planted.KeepHolds:         {zone, "TestARefusalGivesUpWhatIsHeld"},
	planted.FirstMember:       {zone, "TestAHoldThatLapsesBeforeItsCommit"},
	planted.KeepGuests:        {zone, "TestAGuestIsKeptForAWhile"},
	planted.ForgetPhase:       {zone, "TestAPageLeavesNobodyOut"},
	planted.IgnorePriority:    {zone, "TestPriorityCountsInABid"},
	planted.ForgetStale:       {zone, "TestTheIndexDecidesAsThePlainPassDoes"},
	planted.KeepUnsold:        {zone, "TestTheIndexDecidesAsThePlainPassDoes"},
	planted.KeepOpenings:      {zone, "TestARigidJobOfTwoSlicesStartsOnBothAtOnce"},
	planted.DiscardAnyLife:    {filed, "TestConformance"},
	planted.AnswerUnfiled:     {driver, "TestAFilingIsAnsweredWhenItIsDurable"},
	planted.ShowEarlierLife:   {driver, "TestAnEarlierLifeIsNotShown"},
	planted.DropBeforeSync:    {kept, "TestConformance"},
	planted.TornCapture:       {parts, "TestACaptureIsOfOneInstant"},
	planted.SkipCapture:       {parts, "TestWhatTakesTheNextPlaceIsCaptured"},
}

// TestMutants runs when SLUICE_MUTANTS is set (make mutants).
func TestMutants(t *testing.T) {
	if os.Getenv("SLUICE_MUTANTS") == "" {
		t.Skip("SLUICE_MUTANTS is not set: see make mutants")
	}
	built := map[string]string{}
	for bug, m := range mutants {
		if built[m.in] == "" {
			built[m.in] = build(t, m.in)
		}
		t.Run(string(bug), func(t *testing.T) {
			if out, err := run(built[m.in], m.in, m.test, ""); err != nil || !strings.Contains(out, "--- PASS: "+m.test) {
				t.Fatalf("without a bug %s of %s does not pass: %v\n%s", m.test, m.in, err, out)
			}
			out, err := run(built[m.in], m.in, m.test, bug)
			var exit *exec.ExitError
			if !errors.As(err, &exit) || !strings.Contains(out, "--- FAIL: "+m.test) {
				t.Errorf("%s of %s does not fail with %s in: %v\n%s", m.test, m.in, bug, err, out)
			}
		})
	}
}

// TestEveryNamedTestIsThere: a renamed test would be missed only by who runs all of TestMutants.
func TestEveryNamedTestIsThere(t *testing.T) {
	for bug, m := range mutants {
		files, err := filepath.Glob(filepath.Join(folder(m.in), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(text), "func "+m.test+"(")
		}) {
			t.Errorf("%s: %s has no %s", bug, m.in, m.test)
		}
	}
}

// folder is a package's, seen from this one's.
func folder(of string) string {
	return filepath.Join("..", "..", strings.TrimPrefix(of, "sluice.dev/sluice/"))
}

// build makes the test program of a package in which bugs can be planted.
func build(t *testing.T, of string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mutant.test")
	if out, err := exec.Command("go", "test", "-c", "-tags", "planted", "-o", path, of).CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", of, err, out)
	}
	return path
}

// run runs one test in its package's folder, where its files are.
func run(program, of, test string, bug planted.Bug) (string, error) {
	cmd := exec.Command(program, "-test.v", "-test.timeout=3m", "-test.run", "^"+test+"$")
	cmd.Dir = folder(of)
	cmd.Env = append(os.Environ(), "SLUICE_PLANTED="+string(bug))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestEveryBugIsSeen: each bug that is declared is in the soak's table or in this one, and not in both.
func TestEveryBugIsSeen(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../internal/core/planted/planted.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[planted.Bug]int{}
	for _, bug := range planted.Bugs() {
		seen[bug]++
	}
	for bug := range mutants {
		seen[bug]++
	}
	declared := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
				text, _ := strconv.Unquote(lit.Value)
				if declared++; seen[planted.Bug(text)] != 1 {
					t.Errorf("%s is in %d tables, want one", text, seen[planted.Bug(text)])
				}
			}
		}
		return true
	})
	if declared != len(seen) || declared == 0 {
		t.Errorf("%d bugs are declared, %d are in the tables", declared, len(seen))
	}
}
