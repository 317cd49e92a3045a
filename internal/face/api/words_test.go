package api

import (
	"testing"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
)

// TestEveryWordOfTheCoreIsInTheAPI: what the core calls a state, an outcome or a kind has a value of the API that people read as the
// same word.
func TestEveryWordOfTheCoreIsInTheAPI(t *testing.T) {
	same := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%q is %q in the API", want, got)
		}
	}
	for s := job.Waiting; s <= job.Impossible; s++ {
		same(pb.Word(stateOf(s)), s.String())
		if set, err := States([]pb.Job_State{stateOf(s)}); err != nil || set != status.JobStates(0).With(s) {
			t.Errorf("%v: %v, %v", s, set, err)
		}
	}
	for o := range job.Outcome(job.Outcomes) {
		same(pb.Word(pb.Value[pb.Subjob_Outcome](o.String())), o.String())
	}
	for _, word := range []string{"skipped", "publishing", "sold", "starting", "running"} { // of subjobs, by home/view
		same(pb.Word(pb.Value[pb.Subjob_Outcome](word)), word)
	}
	for _, word := range []string{"idle", "running", "reserved", "quarantined", "unconfirmed"} { // of slices, by node
		same(pb.Word(pb.Value[pb.Slice_State](word)), word)
	}
	for _, word := range []string{"open", "pending", "unanswered"} { // of windows, by market and home/view
		same(pb.Word(pb.Value[pb.Window_State](word)), word)
	}
	// of subjobs where memory is short, by node
	for _, word := range []string{"suspending", "suspended", "resuming", "yielding", "ending"} {
		same(pb.Word(pb.Value[pb.Stand_State](word)), word)
	}
	for k := protocol.ReservationKind(0); k.String() != "unknown"; k++ {
		same(pb.Word(reservationKind(k)), k.String())
	}
	for k := protocol.NoticeKind(0); k.String() != "unknown"; k++ {
		same(pb.Word(pb.Value[pb.AgentNotice_Kind](k.String())), k.String())
	}
	for k, word := range map[job.Kind]string{job.Items: "items", job.Steps: "steps", job.Rigid: "rigid"} {
		same(pb.Word(kindOf(k)), word)
	}
}
