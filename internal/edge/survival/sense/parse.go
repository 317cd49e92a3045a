package sense

import "bytes"

// Field is the number behind a name at the beginning of a line ("VmRSS:   12 kB", "swap 4096"); false: there is none.
func Field(text []byte, name string) (int64, bool) {
	for len(text) > 0 {
		line := text
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			line, text = text[:end], text[end+1:]
		} else {
			text = nil
		}
		if len(line) > len(name) && string(line[:len(name)]) == name {
			return Number(line[len(name):])
		}
	}
	return 0, false
}

// Number is the first number of a text behind blanks; false: there is none.
func Number(text []byte) (v int64, ok bool) {
	for len(text) > 0 && (text[0] == ' ' || text[0] == '\t') {
		text = text[1:]
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return v, ok
		}
		if v > (1<<63-1-9)/10 {
			return 1<<63 - 1, true
		}
		v, ok = v*10+int64(c-'0'), true
	}
	return v, ok
}

// Digits writes a number that is not negative, at the end of the room given.
func Digits(room *[20]byte, v int64) []byte {
	i := len(room)
	for {
		i--
		room[i] = byte('0' + v%10)
		if v /= 10; v == 0 {
			return room[i:]
		}
	}
}
