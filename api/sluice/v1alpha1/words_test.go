package sluicev1alpha1

import (
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// TestWords: each value of each enum has one word and is found by it again.
func TestWords(t *testing.T) {
	words[Job_State](t)
	words[Job_Kind](t)
	words[Subjob_Outcome](t)
	words[Slice_State](t)
	words[Reservation_Kind](t)
	words[Window_State](t)
	words[Stand_State](t)
	words[AgentNotice_Kind](t)
	words[User_Role](t)
	for word, v := range map[string]protoreflect.Enum{
		"COMPLETED": Job_COMPLETED, "items": Job_ITEMS, "start-failed": Subjob_START_FAILED, "idle": Slice_IDLE, "lease": Reservation_LEASE,
		"": Job_STATE_UNSPECIFIED, "unanswered": Window_UNANSWERED,
	} {
		if got := Word(v); got != word {
			t.Errorf("%v: word %q, want %q", v, got, word)
		}
	}
	if Word(Job_State(99)) != "" || Value[Job_State]("state-unspecified") != 0 || Value[Job_State]("finished") != 0 {
		t.Error("what is not there has a word or a value")
	}
}

func words[E interface {
	comparable
	protoreflect.Enum
}](t *testing.T) {
	var none E
	for i, all := 0, none.Descriptor().Values(); i < all.Len(); i++ {
		v, _ := none.Type().New(all.Get(i).Number()).(E)
		if w := Word(v); Value[E](w) != v || (w == "") != (v == none) {
			t.Errorf("%v: word %q, which is %v", v, w, Value[E](w))
		}
	}
}
