package flow

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
)

// TestTheLotWakesInOrder: as a list that is sorted each time does, and never more than the budget, of which larger classes have taken
// their part.
func TestTheLotWakesInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lot := NewLot()
		var plain []Ticket
		for range 60 {
			id := TicketID(rapid.IntRange(1, 30).Draw(t, "id"))
			there := slices.IndexFunc(plain, func(tk Ticket) bool { return tk.ID == id })
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0, 1, 2:
				tk := Ticket{ID: id, Class: Class(rapid.IntRange(0, 2).Draw(t, "class")), Born: start +
					quantity.Instant(rapid.IntRange(0, 3).Draw(t, "born")), Priority: int16(rapid.IntRange(0, 1).Draw(t, "priority"))}
				if lot.Add(&tk); there < 0 {
					plain = append(plain, tk)
				}
			case 3:
				if lot.Remove(id) != (there >= 0) {
					t.Fatalf("ticket %d is parked: %v", id, there < 0)
				}
				if there >= 0 {
					plain = slices.Delete(plain, there, there+1)
				}
			case 4:
				var budget [MaxClasses]int
				for c := range 3 {
					budget[c] = rapid.IntRange(0, 4).Draw(t, "budget")
				}
				slices.SortFunc(plain, func(a, b Ticket) int {
					return cmp.Or(cmp.Compare(b.Class, a.Class), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Born, b.Born),
						cmp.Compare(a.ID, b.ID))
				})
				var want []TicketID
				for i := 0; i < len(plain); {
					if len(want) < budget[plain[i].Class] {
						want = append(want, plain[i].ID)
						plain = slices.Delete(plain, i, i+1)
					} else {
						i++
					}
				}
				if got := lot.Wake(budget, nil); !slices.Equal(got, want) {
					t.Fatalf("%v is woken, want %v", got, want)
				}
			}
			if lot.Len() != len(plain) {
				t.Fatalf("%d are parked, want %d", lot.Len(), len(plain))
			}
			for c := range Class(3) {
				n := 0
				for _, tk := range plain {
					if tk.Class == c {
						n++
					}
				}
				if lot.Waiting(c) != n {
					t.Fatalf("%d of class %d wait, want %d", lot.Waiting(c), c, n)
				}
			}
		}
	})
}
