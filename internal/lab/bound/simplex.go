package bound

import "math"

// tableau is a linear program max c x, A x <= b, x >= 0 with b >= 0, in the condensed form of Dantzig: one row for each basic
// variable and one column for each other. Since b >= 0 the slacks are a start, and there is no first phase.
//
// Why our own: the program is tall, thin in each column (at most Buckets+1 entries) and always feasible. A pivot touches
// only the rows that have an entry in its column, which is what keeps it fast. And nothing depends on its precision: a
// bound is computed from the dual solution, which is sound for any values of it.
type tableau struct {
	// Objectives come first, the most important one on top; then the constraints. The last entry of each is its right side.
	rows       [][]float64
	objectives int
	// basic[i] is the variable of constraint i, other[k] that of column k. Variables count from 0, slacks from columns on.
	basic, other []int
	columns      int
	pivots       int
}

func newTableau(columns, constraints, objectives int) *tableau {
	t := &tableau{objectives: objectives, columns: columns, basic: make([]int, constraints), other: make([]int, columns)}
	cells := make([]float64, (columns+1)*(constraints+objectives))
	for range constraints + objectives {
		t.rows = append(t.rows, cells[:columns+1:columns+1])
		cells = cells[columns+1:]
	}
	for i := range t.basic {
		t.basic[i] = columns + i
	}
	for k := range t.other {
		t.other[k] = k
	}
	return t
}

// constraint is row i with its right side in the last place; objective is the o-th one. An objective is written with its
// signs turned: it is at its best when no entry is below 0.
func (t *tableau) constraint(i int) []float64 { return t.rows[t.objectives+i] }
func (t *tableau) objective(o int) []float64  { return t.rows[o] }

// tiny is what counts as nothing, next to entries about 1.
const tiny = 1e-9

// dust is what rounding leaves where there is nothing: kept, it would fill the tableau.
const dust = 1e-13

// solve maximizes the objectives one after the other, each among the best of those before, or stops after limit pivots
// with what it has.
func (t *tableau) solve(limit int) {
	for o := range t.objectives {
		idle := 0
		for {
			k := t.enter(o, idle > len(t.basic))
			if k < 0 {
				break
			}
			i := t.leave(k)
			if i < 0 || t.pivots >= limit { // unbounded can not be: every variable has a row of capacity
				return
			}
			before := t.objective(o)[t.columns]
			t.pivot(i, k)
			if t.objective(o)[t.columns] > before+tiny*math.Abs(before) {
				idle = 0
			} else {
				idle++
			}
		}
	}
}

// enter chooses a column that betters objective o and leaves those before as they are: the steepest, or, while pivots gain
// nothing, the first variable of all, which can not cycle (Bland, 1977).
func (t *tableau) enter(o int, first bool) int {
	best, at := -tiny, -1
	for k, v := range t.objective(o)[:t.columns] {
		if v >= -tiny || !t.free(k, o) {
			continue
		}
		if first {
			if at < 0 || t.other[k] < t.other[at] {
				at = k
			}
		} else if v < best {
			best, at = v, k
		}
	}
	return at
}

func (t *tableau) free(k, o int) bool {
	for _, row := range t.rows[:o] {
		if row[k] > tiny {
			return false
		}
	}
	return true
}

// leave is the constraint that stops column k first; of equal ones that of the first variable. -1 if none does.
func (t *tableau) leave(k int) int {
	least, at := math.Inf(1), -1
	for i := range t.basic {
		row := t.constraint(i)
		if row[k] <= tiny {
			continue
		}
		r := row[t.columns] / row[k]
		if r < least-tiny*math.Abs(least) || at < 0 || r <= least && t.basic[i] < t.basic[at] {
			least, at = r, i
		}
	}
	return at
}

// pivot changes basic i for column k.
func (t *tableau) pivot(i, k int) {
	t.pivots++
	row := t.constraint(i)
	d := 1 / row[k]
	for c := range row {
		row[c] *= d
	}
	row[k] = d
	for r, other := range t.rows {
		f := other[k]
		if r == t.objectives+i || f == 0 {
			continue
		}
		for c, v := range row {
			if v == 0 {
				continue
			}
			if x := other[c] - f*v; math.Abs(x) > dust {
				other[c] = x
			} else {
				other[c] = 0
			}
		}
		other[k] = -f * d
		if b := &other[t.columns]; *b < 0 && r >= t.objectives && *b > -tiny {
			*b = 0
		}
	}
	t.basic[i], t.other[k] = t.other[k], t.basic[i]
}

// value of objective o.
func (t *tableau) value(o int) float64 { return t.objective(o)[t.columns] }

// dual value of every constraint under the last objective, at least 0.
func (t *tableau) dual() []float64 {
	y := make([]float64, len(t.basic))
	for k, v := range t.objective(t.objectives - 1)[:t.columns] {
		if s := t.other[k] - t.columns; s >= 0 {
			y[s] = max(v, 0)
		}
	}
	return y
}
