package restd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
)

// Number is a whole number as any version writes it: 5, null, {"set": true, "infinite": false, "number": 5}, or one of Slurm's own for "not
// set" and "no limit".
type Number struct {
	// Given: the answer has the key, though it may say that there is no number.
	Given bool
	// Set: N is a number. Infinite: there is no limit. Neither: nothing is known. Never both.
	Set, Infinite bool
	N             int64
}

// Slurm's own numbers, in 32 and in 64 bits: NO_VAL and INFINITE.
const (
	noVal32, infinite32 = math.MaxUint32 - 1, math.MaxUint32
	noVal64, infinite64 = "18446744073709551614", "18446744073709551615"
)

// UnmarshalJSON implements json.Unmarshaler.
func (n *Number) UnmarshalJSON(text []byte) error {
	*n = Number{Given: true}
	text = bytes.TrimSpace(text)
	switch s := string(text); {
	case s == "null" || s == noVal64:
		return nil
	case s == infinite64:
		n.Infinite = true
		return nil
	case s[0] == '{':
		var o struct {
			Set, Infinite bool
			Number        json.Number
		}
		if err := json.Unmarshal(text, &o); err != nil {
			return err
		}
		switch {
		case o.Infinite:
			n.Infinite = true
			return nil
		case !o.Set:
			return nil
		}
		text = []byte(o.Number)
	}
	var v json.Number
	if err := json.Unmarshal(text, &v); err != nil {
		return fmt.Errorf("%s is no number", clip(string(text)))
	}
	i, err := v.Int64()
	if err != nil {
		f, failed := v.Float64()
		if failed != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return fmt.Errorf("%s is no whole number", clip(string(text)))
		}
		i = int64(f)
	}
	switch i {
	case noVal32:
	case infinite32:
		n.Infinite = true
	default:
		n.Set, n.N = true, i
	}
	return nil
}

// Count is the number, 0 where there is none. Errors: it is below 0 or more than most.
func (n Number) Count(what string, most int64) (int64, error) {
	if n.Set && (n.N < 0 || n.N > most) {
		return 0, fmt.Errorf("%s is %d; want 0 to %d", what, n.N, most)
	}
	return n.N, nil
}

// Time is the moment that a number of seconds stands for; zero: there is none.
func (n Number) Time(what string) (time.Time, error) {
	s, err := n.Count(what, 1<<38) // some 8,000 years
	if err != nil || s == 0 {
		return time.Time{}, err
	}
	return time.Unix(s, 0).UTC(), nil
}

// Words are a list of words as any version writes it: ["a", "b"], "a,b", "" or null.
type Words []string

// UnmarshalJSON implements json.Unmarshaler.
func (w *Words) UnmarshalJSON(text []byte) error {
	*w = nil
	var list []string
	if err := json.Unmarshal(text, &list); err == nil {
		*w = list
		return nil
	}
	var one string
	if err := json.Unmarshal(text, &one); err != nil {
		return fmt.Errorf("%s is no list of words", clip(string(text)))
	}
	if one != "" {
		*w = strings.Split(one, ",")
	}
	return nil
}

// Upper are the words in upper-case letters, as newer versions write them.
func (w Words) Upper() []string {
	list := make([]string, len(w))
	for i, s := range w {
		list[i] = strings.ToUpper(s)
	}
	return list
}

// clip is a part of what was said, on one line.
func clip(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 300 {
		s = s[:300] + "..."
	}
	return strings.ToValidUTF8(s, "?")
}
