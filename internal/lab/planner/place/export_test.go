package place

import "sluice.dev/sluice/internal/lab/planner"

// LimitShapes makes a placer forget unused shapes early.
func LimitShapes(p planner.Planner, n int) { p.(*Placer).table.shapeLimit = n }
