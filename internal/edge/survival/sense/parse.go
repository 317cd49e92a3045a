package sense

import "bytes"

// Field is the number behind a name at the beginning of a line ("VmRSS:   12 kB", "swap 4096"); false: there is none.
func Field(text []byte, name string) (int64, bool) {
	line, found := behind(text, name)
	if !found {
		return 0, false
	}
	return Number(line)
}

// behind is what is behind a name at the beginning of a line; false: no line begins so, or none has more than that.
func behind(text []byte, name string) ([]byte, bool) {
	for len(text) > 0 {
		line := text
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			line, text = text[:end], text[end+1:]
		} else {
			text = nil
		}
		if len(line) > len(name) && string(line[:len(name)]) == name {
			return line[len(name):], true
		}
	}
	return nil, false
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
