package ranked

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
)

// TestArea: time of a whole GPU, on the class where that is least.
func TestArea(t *testing.T) {
	classes := []planner.Class{{Name: "3g", Weight: 429}, {Name: "1g", Weight: 143}, {Name: "plain"}}
	for _, c := range []struct {
		name    string
		task    planner.Task
		minutes [3]int
		want    time.Duration
	}{
		{"two devices of the large class", planner.Task{Devices: 2, Share: planner.Whole, Classes: 1}, [3]int{1000}, 858 * time.Minute},
		{"the small class is the smaller area, and takes longer", planner.Task{Devices: 1, Share: planner.Whole, Classes: 3},
			[3]int{1000, 2000}, 286 * time.Minute},
		{"a class that it may not use does not count", planner.Task{Devices: 1, Share: planner.Whole, Classes: 1}, [3]int{1000, 1},
			429 * time.Minute},
		{"half of a device of a class without a weight", planner.Task{Devices: 1, Share: planner.Whole / 2, Classes: 4}, [3]int{0, 0, 60},
			30 * time.Minute},
	} {
		c.task.Run = new([planner.MaxClasses]time.Duration)
		for i, m := range c.minutes {
			c.task.Run[i] = time.Duration(m) * time.Minute
		}
		if got := time.Duration(area(classes, &book.Entry{Task: c.task})); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if area(classes, &book.Entry{Task: planner.Task{Devices: 1, Share: 1, Classes: 7}}) != book.Unknown {
		t.Error("the area of a task that nobody knows the run of")
	}
}
