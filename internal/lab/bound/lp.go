package bound

// pivotLimit ends what can not be expected to end. The value is a bound wherever it stops.
func pivotLimit(t *tableau) int { return 20 * (len(t.basic) + 100) }

// lp bounds the work done in the window by the linear program
//
//	max  sum s_ic x_icb
//	     sum over i of x_icb                 <= n_c L        for class c, bucket b of length L
//	     sum over c, b' <= b of s_ic x_icb'  <= R_ib         for type i, bucket b: the work that has come by its end
//
// over the time x_icb that slices of class c give to type i in bucket b. It also gives the size.
//
// The value is not the program's own but that of its dual: for any prices v_ib in [0,1] that never fall with b, the sum of
// n_c L max_i(s_ic v_ib) over c and b and of (1-v_ib) times the work of type i that comes in b, over i and b, is at least
// the value of every schedule. The simplex method only finds good prices; rounding, or an early end, can not make the
// bound unsound.
func (m *Mix) lp(size *Size) float64 {
	types := m.merged(m.types)
	n, classes, buckets := len(types), len(m.classes), m.buckets
	size.Types, size.Buckets, size.Step, size.Jobs = n, buckets, m.step, m.jobs
	size.Variables, size.Rows = 0, (n+classes)*buckets
	if n == 0 {
		return 0
	}
	type variable struct{ i, c, b int }
	var vars []variable
	for i, k := range types {
		for c := range classes {
			for b := range buckets {
				if k.speeds[c] > 0 {
					vars = append(vars, variable{i, c, b})
				}
			}
		}
	}
	size.Variables = len(vars)

	// Time is counted in buckets of the whole cluster's slices, so that entries are about 1.
	length := m.window.length() / float64(buckets)
	t := newTableau(len(vars), size.Rows, 1)
	for k, v := range vars {
		s := speed(types[v.i].speeds[v.c])
		t.objective(0)[k] = -s
		t.constraint(v.c*buckets + v.b)[k] = 1
		for b := v.b; b < buckets; b++ {
			t.constraint((classes+v.i)*buckets + b)[k] = s
		}
	}
	for c, class := range m.classes {
		for b := range buckets {
			t.constraint(c*buckets + b)[t.columns] = float64(class.Count)
		}
	}
	for i := range types {
		sum := 0.
		for b := range buckets {
			sum += types[i].work[b] / length
			t.constraint((classes+i)*buckets + b)[t.columns] = sum
		}
	}
	t.solve(pivotLimit(t))
	size.Pivots = t.pivots
	return m.priced(types, t.dual()[classes*buckets:]) * length
}

// priced is the value of the dual for the prices of the work in y, in units of a bucket's length.
func (m *Mix) priced(types []kind, y []float64) float64 {
	buckets := m.buckets
	length := m.window.length() / float64(buckets)
	price := make([][]float64, len(types)) // v_ib
	value := 0.
	for i := range types {
		price[i] = make([]float64, buckets)
		z := 0.
		for b := buckets - 1; b >= 0; b-- {
			z = min(1, z+y[i*buckets+b])
			price[i][b] = 1 - z
			value += types[i].work[b] / length * z
		}
	}
	for c, class := range m.classes {
		for b := range buckets {
			best := 0.
			for i := range types {
				best = max(best, speed(types[i].speeds[c])*price[i][b])
			}
			value += float64(class.Count) * best
		}
	}
	return value
}

// area is the bound of one bucket and one type: all the work, or all the time at the best speeds.
func (m *Mix) area() float64 {
	types := m.merged(m.types)
	whole := 0.
	for c, class := range m.classes {
		best := int64(0)
		for i := range types {
			best = max(best, types[i].speeds[c])
		}
		whole += float64(class.Count) * speed(best) * m.window.length()
	}
	return min(whole, work(types))
}
