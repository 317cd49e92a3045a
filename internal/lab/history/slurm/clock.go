package slurm

import (
	"bytes"
	"strconv"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/history"
)

// clock reads instants and lengths of time as Slurm prints them.
type clock struct {
	book *history.Book
	zone *time.Location
}

// instant reads 2026-11-28T00:44:49, with an offset or without, or seconds since 1970. What is not known is Never; ok is false for what is
// no instant.
func (c *clock) instant(text []byte) (at quantity.Instant, ok bool) {
	switch string(text) {
	case "", "Unknown", "None", "N/A", "n/a", "(null)", "NONE":
		return quantity.Never, true
	}
	if len(text) < len("2026-11-28T00:44:49") {
		seconds, err := strconv.ParseUint(string(text), 10, 63)
		if err != nil || seconds > 4102444800 { // 2100
			return 0, false
		}
		if seconds == 0 {
			return quantity.Never, true
		}
		return quantity.Instant(seconds) * quantity.Instant(time.Second), true
	}
	var n [6]int
	for i, from := range [6]int{0, 5, 8, 11, 14, 17} {
		to := from + 2
		if i == 0 {
			to = 4
		}
		for _, c := range text[from:to] {
			if c < '0' || c > '9' {
				return 0, false
			}
			n[i] = n[i]*10 + int(c-'0')
		}
	}
	if text[4] != '-' || text[7] != '-' || text[10] != 'T' && text[10] != ' ' || text[13] != ':' || text[16] != ':' ||
		n[0] < 1970 || n[0] > 2100 || n[1] < 1 || n[1] > 12 || n[2] < 1 || n[2] > 31 || n[3] > 23 || n[4] > 59 || n[5] > 60 {
		return 0, false
	}
	rest := bytes.TrimSpace(text[19:])
	if len(rest) == 0 {
		if c.zone == nil {
			c.zone = c.book.Zone()
		}
		return quantity.At(time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], 0, c.zone)), true
	}
	offset, ok := offset(rest)
	return quantity.At(time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], 0, time.UTC)).Add(-offset), ok
}

// twice says whether the local clock of an instant stands there twice, since clocks are put back an hour. False where none was read without
// an offset.
func (c *clock) twice(t quantity.Instant) bool {
	if c.zone == nil {
		return false
	}
	const layout = "2006-01-02 15:04:05"
	at := func(t quantity.Instant) string { return t.Time().In(c.zone).Format(layout) }
	return at(t) == at(t.Add(time.Hour)) || at(t) == at(t.Add(-time.Hour))
}

// offset reads Z, +01:00, +0100 and +01.
func offset(text []byte) (time.Duration, bool) {
	if string(text) == "Z" {
		return 0, true
	}
	digits := bytes.ReplaceAll(text[1:], []byte(":"), nil)
	n, err := strconv.ParseUint(string(digits), 10, 16)
	if err != nil || len(digits) != 2 && len(digits) != 4 || text[0] != '+' && text[0] != '-' {
		return 0, false
	}
	if len(digits) == 2 {
		n *= 100
	}
	d := time.Duration(n/100)*time.Hour + time.Duration(n%100)*time.Minute
	if n/100 > 23 || n%100 > 59 {
		return 0, false
	}
	if text[0] == '-' {
		d = -d
	}
	return d, true
}

// length reads [days-]hours:minutes:seconds, minutes:seconds with a fraction, or a word for no limit, which is 0.
func length(text []byte) (d time.Duration, ok bool) {
	switch string(text) {
	case "", "UNLIMITED", "Partition_Limit", "INVALID", "NOT_SET", "None", "Unknown", "INFINITE":
		return 0, true
	}
	if !bytes.ContainsAny(text, ":-") { // a number of who knows what
		return 0, false
	}
	text, _, _ = bytes.Cut(text, []byte("."))
	d, err := quantity.ParseDuration(string(text))
	return d, err == nil && d <= 1<<32*time.Second
}

// minutes reads a limit in whole minutes.
func minutes(text []byte) (time.Duration, bool) {
	n, err := strconv.ParseUint(string(text), 10, 32)
	if err != nil {
		return length(text)
	}
	if n > 1<<32/60 {
		return 0, false
	}
	return time.Duration(n) * time.Minute, true
}
