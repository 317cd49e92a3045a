package watch

import (
	"encoding/binary"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// errKilled is the end of a writer in the middle.
var errKilled = errors.New("killed")

// killed runs a writer that dies before a store, the nth from now on; it says whether it did.
func killed(stores *int, n int, write func()) (died bool) {
	*stores = n
	defer func() {
		*stores = -1
		if r := recover(); r != nil {
			if r != errKilled { //nolint:errorlint // it was thrown as it is
				panic(r)
			}
			died = true
		}
	}()
	write()
	return false
}

// mortal are words whose writer dies when stores has come down to zero; below it there is no limit.
func mortal(n int) (w words, stores *int) {
	stores = new(int)
	*stores = -1
	return words{at: make([]uint64, n), before: func() {
		if *stores == 0 {
			panic(errKilled)
		}
		if *stores > 0 {
			*stores--
		}
	}}, stores
}

// TestAPairIsReadWholeOrAsItWas: whoever is killed at whatever store, a reader has the last one that was written to its end. The oracle is
// the list of what was.
func TestAPairIsReadWholeOrAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size = 12
		w, stores := mortal(1 + 2*(front+size))
		p := pair{number: w.part(0, 1), places: [2]words{w.part(1, 1+front+size), w.part(1+front+size, w.len())}}
		var whole []uint64
		for range rapid.IntRange(1, 12).Draw(t, "writes") {
			next := rapid.SliceOfN(rapid.Uint64(), 0, size).Draw(t, "words")
			n := -1
			if rapid.Bool().Draw(t, "dies") {
				n = rapid.IntRange(0, size+5).Draw(t, "stores")
			}
			died := n >= 0 && killed(stores, n, func() { p.write(next) })
			if n < 0 {
				p.write(next)
			}
			if !died {
				whole = next
			}
			got, _, ok := p.read(make([]uint64, size))
			if ok != (p.last() > 0) || ok && !slices.Equal(got, whole) {
				t.Fatalf("read %v, %v; want %v", got, ok, whole)
			}
		}
	})
}

// TestAReaderIsOvertaken: what is written while it reads is never mixed with what was there, by a reader that is stopped at every word.
func TestAReaderIsOvertaken(t *testing.T) {
	const size = 64
	w := words{at: make([]uint64, 1+2*(front+size))}
	p := pair{number: w.part(0, 1), places: [2]words{w.part(1, 1+front+size), w.part(1+front+size, w.len())}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		room := make([]uint64, size)
		for n := range uint64(20000) {
			for i := range room {
				room[i] = n * uint64(i+1)
			}
			p.write(room)
		}
	}()
	room := make([]uint64, size)
	for last := uint64(0); ; {
		of, n, ok := p.read(room)
		if ok {
			if n < last {
				t.Fatalf("number %d after %d", n, last)
			}
			last = n
			for i := range of {
				if of[i] != (n-1)*uint64(i+1) {
					t.Fatalf("word %d of number %d is %d", i, n, of[i])
				}
			}
		}
		select {
		case <-done:
			if of, n, ok := p.read(room); !ok || n != 20000 || len(of) != size {
				t.Fatalf("at rest: %d, %v", n, ok)
			}
			return
		default:
		}
	}
}

func TestDamageIsSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size = 8
		w := words{at: make([]uint64, 1+2*(front+size))}
		p := pair{number: w.part(0, 1), places: [2]words{w.part(1, 1+front+size), w.part(1+front+size, w.len())}}
		p.write(rapid.SliceOfN(rapid.Uint64(), 1, size).Draw(t, "words"))
		before, _, _ := p.read(make([]uint64, size))
		w.at[rapid.IntRange(0, len(w.at)-1).Draw(t, "where")] ^= 1 << rapid.IntRange(0, 63).Draw(t, "bit")
		if got, _, ok := p.read(make([]uint64, size)); ok && !slices.Equal(got, before) {
			t.Fatalf("damaged words were believed: %v, want %v", got, before)
		}
	})
}

func drawToken(t *rapid.T) job.Token {
	return job.Token{Epoch: rapid.Uint32Range(1, 3).Draw(t, "epoch"), Seq: rapid.Uint64().Draw(t, "seq")}
}

func drawTable(t *rapid.T) *Table {
	table := &Table{Config: airlock.Config{Outgrown: airlock.Outgrown(rapid.IntRange(0, 1).Draw(t, "outgrown")),
		Order: airlock.Order(rapid.IntRange(0, 1).Draw(t, "order")),
		Timer: time.Duration(rapid.IntRange(11, 40).Draw(t, "timer")) * time.Second}.WithDefaults(), Wall: 5e18, Boot: 77,
		Base: rapid.SampledFrom([]string{"", "/sys/fs/cgroup/a"}).Draw(t, "base")}
	for range rapid.IntRange(0, 5).Draw(t, "rows") {
		r := Row{
			Token: drawToken(t), Start: quantity.Instant(rapid.Int64().Draw(t, "start")), Priority: rapid.Int32().Draw(t, "priority"),
			Value: rapid.Uint16().Draw(t, "value"), Planned: quantity.Amount(rapid.Int64Range(0, 1<<50).Draw(t, "planned")),
			Class: airlock.Class(rapid.IntRange(0, 2).Draw(t, "class")), Bound: rapid.Bool().Draw(t, "bound"),
			Yields: rapid.Bool().Draw(t, "yields"), Stopping: rapid.Bool().Draw(t, "stopping"),
			Init: rapid.IntRange(0, 1<<22).Draw(t, "init"), InitStarted: rapid.Uint64().Draw(t, "started"),
		}
		if table.Base != "" {
			r.Group = rapid.StringMatching(`[a-z0-9-]{0,60}`).Draw(t, "group")
		}
		table.Rows = append(table.Rows, r)
	}
	slices.SortFunc(table.Rows, func(a, b Row) int { return a.Token.Compare(b.Token) })
	table.Rows = slices.CompactFunc(table.Rows, func(a, b Row) bool { return a.Token == b.Token })
	return table
}

func TestATableGoesOverAsItIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawTable(t)
		var got Table
		if !got.decode(want.encode(nil), nil) {
			t.Fatalf("%+v was refused", want)
		}
		if len(got.Rows) == 0 && len(want.Rows) == 0 {
			got.Rows = want.Rows
		}
		if !reflect.DeepEqual(&got, want) {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	})
}

func TestABoardGoesOverAsItIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Board{Life: rapid.Uint64().Draw(t, "life"), At: 4, Capacity: 1 << 40, Used: 1 << 39, Growth: -5, Room: 6, Stall: 7,
			Level: airlock.Level(rapid.IntRange(0, 3).Draw(t, "level"))}
		for i := range rapid.IntRange(0, 6).Draw(t, "stands") {
			want.Stands = append(want.Stands, Stand{
				Token: job.Token{Epoch: 2, Seq: uint64(3 * i)}, Since: 1, Resumed: 2, Resident: 1 << 33, Parked: 4, Growth: -9,
				State: airlock.State(rapid.IntRange(0, airlock.States-1).Draw(t, "state")), Entries: rapid.Uint8().Draw(t, "entries"),
				Cause: airlock.Cause(rapid.IntRange(0, 5).Draw(t, "cause")),
			})
		}
		var got Board
		if !got.decode(want.encode(nil)) || !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
		for i := range 20 {
			stand, ok := got.Of(job.Token{Epoch: 2, Seq: uint64(i)})
			if want := i%3 == 0 && i/3 < len(got.Stands); ok != want || ok && stand != &got.Stands[i/3] {
				t.Fatalf("token 2-%d: %v, want %v", i, ok, want)
			}
		}
	})
}

// TestARingTellsWhatItHas: readers of any pace and writers that die at any store, against a plain list.
func TestARingTellsWhatItHas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, stores := mortal(1 + ringWords)
		r := ring{next: w.part(0, 1), slots: w.part(1, w.len())}
		var all, told []Act
		from, lost := uint64(0), uint64(0)
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			for range rapid.SampledFrom([]int{0, 1, 3, ringActs - 1, ringActs, ringActs + 2}).Draw(t, "acts") {
				a := Act{Life: 3, At: quantity.Instant(len(all)), Token: job.Token{Epoch: 1, Seq: uint64(len(all))}, Step: airlock.Reclaim,
					Cause: airlock.Brink, Level: airlock.Emergency, Relief: 5, Used: 6}
				r.add(&a)
				all = append(all, a)
			}
			if n := rapid.IntRange(0, 12).Draw(t, "stores"); n < 10 && !killed(stores, n, func() {
				r.add(&Act{Step: airlock.Suspend, Cause: airlock.Deficit, Life: 9})
			}) {
				t.Fatal("it did not die")
			}
			if rapid.Bool().Draw(t, "reads") {
				next, missed := r.read(from, func(a *Act) { told = append(told, *a) })
				from, lost = next, lost+missed
			}
		}
		next, missed := r.read(from, func(a *Act) { told = append(told, *a) })
		if lost += missed; next != uint64(len(all)) || lost+uint64(len(told)) != uint64(len(all)) {
			t.Fatalf("%d told and %d lost of %d, next %d", len(told), lost, len(all), next)
		}
		last := -1
		for _, a := range told {
			if a != all[a.At] || int(a.At) <= last {
				t.Fatalf("told %+v after %d", a, last)
			}
			last = int(a.At)
		}
		// What a writer that died had begun to write over is lost, and nothing else of the last that there are.
		if n := min(len(all), ringActs) - 1; n > 0 && from <= uint64(len(all)-n) && len(told) < n {
			t.Fatalf("%d told of the last %d", len(told), n)
		}
	})
}

// hostile makes words of bytes.
func hostile(data []byte) (w []uint64) {
	for ; len(data) >= 8; data = data[8:] {
		w = append(w, binary.LittleEndian.Uint64(data))
	}
	return w
}

func raw(w []uint64) (data []byte) {
	for _, v := range w {
		data = binary.LittleEndian.AppendUint64(data, v)
	}
	return data
}

// FuzzTable: whatever lies there, it is refused or is a table that can be decided on, and that goes over again as it is.
func FuzzTable(f *testing.F) {
	good := Table{Config: airlock.Config{}.WithDefaults(), Base: "/sys/fs/cgroup",
		Rows: []Row{{Token: job.Token{Epoch: 1, Seq: 2}, Class: airlock.Lasting, Group: "sluice-1-2", Init: 7},
			{Token: job.Token{Epoch: 1, Seq: 3}, Yields: true}}}
	f.Add(raw(good.encode(nil)))
	f.Add([]byte{})
	f.Add(raw(make([]uint64, headWords)))
	f.Fuzz(func(t *testing.T, data []byte) {
		var table, again Table
		if !table.decode(hostile(data), nil) {
			return
		}
		if len(table.Rows) > airlock.MaxTasks || !again.decode(table.encode(nil), nil) || !slices.Equal(again.Rows, table.Rows) {
			t.Fatalf("%+v", table)
		}
		a, s := airlock.New(table.Config), airlock.Snapshot{Capacity: 1 << 30, Used: 1 << 30, Room: 1 << 20}
		for _, r := range table.Rows {
			s.Tasks = append(s.Tasks, airlock.Task{Token: r.Token, Start: r.Start, Priority: r.Priority, Value: r.Value, Class: r.Class,
				Bound: r.Bound, Yields: r.Yields, Resident: 1 << 20})
		}
		a.Decide(table.Wall, &s)
	})
}

func FuzzBoard(f *testing.F) {
	good := Board{Life: 1, Stands: []Stand{{Token: job.Token{Epoch: 1, Seq: 2}, State: airlock.Suspended, Cause: airlock.Deficit}}}
	f.Add(raw(good.encode(nil)))
	f.Fuzz(func(t *testing.T, data []byte) {
		var b, again Board
		if b.decode(hostile(data)) && (len(b.Stands) > airlock.MaxTasks || !again.decode(b.encode(nil)) ||
			!slices.Equal(b.Stands, again.Stands)) {
			t.Fatalf("%+v", b)
		}
	})
}

// FuzzRegion: a region of any bytes is read by both sides without harm.
func FuzzRegion(f *testing.F) {
	f.Add([]byte{1}, uint64(3))
	f.Add([]byte{255, 3, 0, 0, 0, 0, 0, 0, 9}, uint64(1<<63))
	f.Fuzz(func(t *testing.T, data []byte, from uint64) {
		if len(data) == 0 {
			return
		}
		w := words{at: make([]uint64, regionWords)}
		for i := range w.at {
			var b [8]byte
			for j := range b {
				b[j] = data[(8*i+j)%len(data)] // over and over
			}
			w.at[i] = binary.LittleEndian.Uint64(b[:])
		}
		r := divide(w)
		room := make([]uint64, tableWords)
		if of, _, ok := r.table.read(room); ok {
			(&Table{}).decode(of, nil)
		}
		if of, _, ok := r.board.read(room); ok {
			(&Board{}).decode(of)
		}
		r.ring.read(from, func(*Act) {})
	})
}
