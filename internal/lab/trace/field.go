package trace

import (
	"bytes"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

const (
	// maxCount keeps sums and differences of counts far from overflow; products are the format's to check.
	maxCount = 1 << 53
	// maxTime does the same for times: 146 years.
	maxTime = 1 << 62
)

// Field is one value of a line. Its methods give the value, or note a problem and give zero.
type Field struct {
	line     *Line
	name     string
	from, to int
}

// Bytes is the text; valid while the line is parsed.
func (f Field) Bytes() []byte { return f.line.Text[f.from:f.to] }

// Empty says that there is no text.
func (f Field) Empty() bool { return f.from == f.to }

// Minus is the field after a minus sign, if it has one.
func (f Field) Minus() (Field, bool) {
	if f.Empty() || f.Bytes()[0] != '-' {
		return f, false
	}
	f.from++
	return f, true
}

// NoFraction is the field without a fraction of zeros, such as 30 of "30.0", if it has one.
func (f Field) NoFraction() (Field, bool) {
	text := f.Bytes()
	point := bytes.IndexByte(text, '.')
	if point < 1 || point == len(text)-1 || len(bytes.Trim(text[point+1:], "0")) > 0 {
		return f, false
	}
	f.to = f.from + point
	return f, true
}

// Fail notes that the field is not what was expected.
func (f Field) Fail(expected string) {
	text, dots := f.Bytes(), ""
	if len(text) > 40 {
		text, dots = text[:40], "..."
	}
	f.line.Fail(f.from, "%s is %q%s, expected %s", f.name, text, dots, expected)
}

// Count is a whole number from 0 to 2^53.
func (f Field) Count() int64 {
	n, ok := f.fixed(0, maxCount)
	if !ok {
		f.Fail("a whole number, 0 or more")
	}
	return n
}

// Seconds is a time given in seconds, 0 or more, cut to whole nanoseconds.
func (f Field) Seconds() time.Duration {
	n, ok := f.fixed(9, maxTime)
	if !ok {
		f.Fail("seconds, 0 or more, such as 12.5")
	}
	return time.Duration(n)
}

// Milliseconds is a time given in milliseconds, 0 or more, cut to whole nanoseconds.
func (f Field) Milliseconds() time.Duration {
	n, ok := f.fixed(6, maxTime)
	if !ok {
		f.Fail("milliseconds, 0 or more, such as 12.5")
	}
	return time.Duration(n)
}

// Milli is a number in thousandths, 0 or more: 1300 for "1.3". Further digits are cut.
func (f Field) Milli() int64 {
	n, ok := f.fixed(3, maxCount)
	if !ok {
		f.Fail("a number, 0 or more, such as 1.3")
	}
	return n
}

// fixed reads decimal digits as a multiple of 10^-places.
func (f Field) fixed(places int, most int64) (int64, bool) {
	var n int64
	digits, fraction := 0, -1 // digits seen in all, and behind the point
	for _, c := range f.Bytes() {
		switch {
		case c == '.' && fraction < 0 && digits > 0 && places > 0:
			fraction = 0
			continue
		case c < '0' || c > '9':
			return 0, false
		}
		digits++
		if fraction >= 0 {
			fraction++
		}
		if fraction > places {
			continue
		}
		if n > (most-int64(c-'0'))/10 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if digits == 0 || fraction == 0 {
		return 0, false
	}
	for i := max(fraction, 0); i < places; i++ {
		if n > most/10 {
			return 0, false
		}
		n *= 10
	}
	return n, true
}

// Float is a finite number in decimal notation.
func (f Field) Float() float64 {
	for _, c := range f.Bytes() { // strconv also knows hexadecimal, underscores and infinities
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			f.Fail("a number")
			return 0
		}
	}
	n, err := strconv.ParseFloat(string(f.Bytes()), 64)
	if err != nil || math.IsInf(n, 0) {
		f.Fail("a number")
		return 0
	}
	return n
}

// Date is an instant such as "2017-09-04 10:30:41.25" from 1970 to 2100, as the time since 1970, UTC assumed.
func (f Field) Date() time.Duration {
	t, err := time.Parse(time.DateTime, string(f.Bytes()))
	if err != nil || t.Year() < 1970 || t.Year() > 2100 {
		f.Fail(`an instant such as "2017-09-04 10:30:41"`)
		return 0
	}
	return time.Duration(t.UnixNano())
}

// ID is a text that hardly comes again, such as a job's name.
func (f Field) ID() string {
	if !f.plain() {
		return ""
	}
	return f.line.names.id(f.Bytes())
}

// Name is a text that comes again and again, such as a queue's name.
func (f Field) Name() string {
	if !f.plain() {
		return ""
	}
	return f.line.names.name(f.Bytes())
}

// Prose is a text for people, such as a comment's. Where it is not UTF-8 it is taken as Latin-1 and treated by that name; what
// Latin-1 has no character for becomes U+FFFD.
func (f Field) Prose(latin string) string {
	for _, c := range f.Bytes() {
		if c < ' ' && c != '\t' || c == 0x7f {
			f.Fail("a text without control characters")
			return ""
		}
	}
	if utf8.Valid(f.Bytes()) {
		return string(f.Bytes())
	}
	f.line.Treat(latin)
	text := make([]rune, 0, len(f.Bytes()))
	for _, c := range f.Bytes() {
		if r := rune(c); r < 0x80 || r >= 0xa0 {
			text = append(text, r)
		} else {
			text = append(text, utf8.RuneError)
		}
	}
	return string(text)
}

// plain refuses what would spoil a terminal or a table: no text, control characters, quotes, bytes that are no UTF-8.
func (f Field) plain() bool {
	ascii := true
	for _, c := range f.Bytes() {
		if c < ' ' || c == 0x7f || c == '"' {
			f.Fail("a text without quotes and control characters")
			return false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	if f.Empty() || !ascii && !utf8.Valid(f.Bytes()) {
		f.Fail("a text")
		return false
	}
	return true
}
