package trace

import (
	"errors"
	"io"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
)

// field is content as the only field of a line, and where its problems go.
func field(content string) (Field, *problems) {
	p := &problems{file: "f"}
	l := &Line{Number: 1, Text: []byte(content), problems: p}
	return l.Field("x", 0, len(content)), p
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		text  string
		count int64 // -1: refused
		time  time.Duration
		milli int64
	}{
		{"0", 0, 0, 0},
		{"7", 7, 7 * time.Second, 7000},
		{"007", 7, 7 * time.Second, 7000},
		{"1.5", -1, 1500 * time.Millisecond, 1500},
		{"1.0009999999999", -1, 1000999999 * time.Nanosecond, 1000},
		{"4611686018", 4611686018, 4611686018 * time.Second, 4611686018000},
		{"4611686019", 4611686019, -1, 4611686019000},
		{"9007199254740992", 1 << 53, -1, -1},
		{"9007199254740993", -1, -1, -1},
		{"99999999999999999999999", -1, -1, -1},
		{"0.99999999999999999999999999", -1, 999999999, 999},
		{"", -1, -1, -1}, {".", -1, -1, -1}, {".5", -1, -1, -1}, {"5.", -1, -1, -1}, {"1.2.3", -1, -1, -1}, {"-1", -1, -1, -1},
		{"+1", -1, -1, -1}, {" 1", -1, -1, -1}, {"1e3", -1, -1, -1}, {"0x1", -1, -1, -1}, {"1_0", -1, -1, -1}, {"٣", -1, -1, -1},
	} {
		check := func(what string, got, want int64, p *problems) {
			if p.any() != (want < 0) || want >= 0 && got != want {
				t.Errorf("%q as %s: %d, problems %v, want %d", c.text, what, got, p.list, want)
			}
		}
		f, p := field(c.text)
		check("count", f.Count(), c.count, p)
		f, p = field(c.text)
		check("seconds", int64(f.Seconds()), int64(c.time), p)
		f, p = field(c.text)
		check("milli", f.Milli(), c.milli, p)
		f, p = field(c.text)
		if ms := f.Milliseconds(); c.time > 0 && (p.any() || (ms-c.time/1000).Abs() > 1) {
			t.Errorf("%q as milliseconds: %v, %v", c.text, ms, p.list)
		}
	}
}

// Decimals are cut exactly, as rational arithmetic has it.
func TestSecondsAgainstRationals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[0-9]{1,9}(\.[0-9]{1,20})?`).Draw(t, "text")
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatal("no number")
		}
		exact.Mul(exact, big.NewRat(1e9, 1))
		want := new(big.Int).Quo(exact.Num(), exact.Denom()).Int64()
		if f, p := field(text); int64(f.Seconds()) != want || p.any() {
			t.Fatalf("%q is %d, want %d, %v", text, f.Seconds(), want, p.list)
		}
	})
}

func TestFloatsDatesAndTexts(t *testing.T) {
	for text, want := range map[string]float64{"0": 0, "-0.5": -.5, "1e3": 1000, "33879490560.0": 33879490560} {
		if f, p := field(text); f.Float() != want || p.any() {
			t.Errorf("%q: %v", text, p.list)
		}
	}
	date := time.Duration(time.Date(2017, 9, 4, 10, 30, 41, 250e6, time.UTC).UnixNano())
	if f, p := field("2017-09-04 10:30:41.25"); f.Date() != date || p.any() {
		t.Errorf("a date: %v", p.list)
	}
	if f, p := field("né"); f.ID() != "né" || f.Name() != "né" || p.any() {
		t.Errorf("a text: %v", p.list)
	}
	refused := func(what string, texts []string, get func(Field)) {
		for _, text := range texts {
			f, p := field(text)
			if get(f); len(p.list) != 1 {
				t.Errorf("%q as %s: %v", text, what, p.list)
			}
		}
	}
	refused("float", []string{"", "nan", "inf", "1e999", "0x1p3", "1_0", "--1", "1 "}, func(f Field) { f.Float() })
	refused("date", []string{"", "2017-02-29 00:00:00", "2017-09-04", "1969-12-31 23:59:59", "2101-01-01 00:00:00", "2017-09-04 24:00:00"},
		func(f Field) { f.Date() })
	refused("id", []string{"", "a\x00", "a\x1b[1m", `"a"`, "\xff"}, func(f Field) { f.ID() })
	refused("name", []string{"", "a\tb", "\xff"}, func(f Field) { f.Name() })
}

func TestAProblemQuotesOnlyTheBeginning(t *testing.T) {
	f, p := field(strings.Repeat("x", 100000))
	f.Count()
	if text := p.err().Error(); len(text) > 200 || !strings.HasPrefix(text, `f:1:1: x is "xxx`) ||
		!strings.Contains(text, `"..., expected a whole number`) {
		t.Error(text)
	}
}

// Ids and names keep their text whatever comes later, few or many, short or longer than a chunk.
func TestNamesStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var n names
		var got, want []string
		for _, size := range rapid.SliceOfN(rapid.IntRange(0, 2*chunk), 0, 60).Draw(t, "sizes") {
			text := []byte(strings.Repeat(string(rune('a'+size%26)), size))
			want = append(want, string(text), string(text))
			got = append(got, n.id(text), n.name(text))
			for i := range text { // the line's memory is used again
				text[i] = '!'
			}
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("text %d is %.20q, was %.20q", i, got[i], want[i])
			}
		}
	})
	var n names
	for i := range 3 * maxNames {
		n.name([]byte{byte(i), byte(i >> 8)})
	}
	if len(n.known) != maxNames {
		t.Errorf("%d names are kept", len(n.known))
	}
}

func TestHeaders(t *testing.T) {
	sheets := []Sheet{
		{Columns: []string{"a", "b"}, Optional: []string{"o"}, Parse: func(l *Line, r *Record) {
			r.Rank.Rank = 10*l.Column(0).Count() + l.Column(1).Count()
			if l.Has(2) {
				r.Rank.Rank += 100 * l.Column(2).Count()
			}
		}},
		{Columns: []string{"c"}, Parse: func(l *Line, r *Record) { r.Rank.Rank = -l.Column(0).Count() }},
	}
	for content, want := range map[string]int64{"a,b\n1,2": 12, "b,a\n2,1": 12, "o,b,a\n3,2,1": 312, "c\n7": -7} {
		var r Record
		reader := OpenCSV(strings.NewReader(content), "f", sheets...)
		if err := reader.Next(&r); err != nil || r.Rank.Rank != want || r.Line != 2 {
			t.Errorf("%q: %d, %v", content, r.Rank.Rank, err)
		}
		if err := reader.Next(&r); !errors.Is(err, io.EOF) {
			t.Errorf("%q ends with %v", content, err)
		}
	}
	for content, want := range map[string]string{
		"a\n1": "f:1:1: the header lacks b; expected a, b",
		"x\n1": "f:1:1: the header lacks c; expected c\nf:1:1: column \"x\" is not part of this format; take it out, or read the " +
			"file as another format",
		"a,b,b\n1": "f:1:5: column \"b\" is there twice",
		"c,x,y\n": "f:1:3: column \"x\" is not part of this format; take it out, or read the file as another format\nf:1:5: column " +
			"\"y\" is not part of this format; take it out, or read the file as another format",
		// An empty line is one empty field.
		"c\n1\n\n-1": "f:3:1: c is \"\", expected a whole number, 0 or more\nf:4:1: c is \"-1\", expected a whole number, 0 or more",
	} {
		var r Record
		reader := OpenCSV(strings.NewReader(content), "f", sheets...)
		err := reader.Next(&r)
		for err == nil {
			err = reader.Next(&r)
		}
		if errkind.Of(err) != errkind.Invalid || err.Error() != want {
			t.Errorf("%q:\n%v\nwant\n%s", content, err, want)
		}
	}
}
