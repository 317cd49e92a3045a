package shim

import "strings"

// lastLines returns the last n lines of data as valid UTF-8 without trailing blanks. cut says that data begins in the
// middle of something: its first line is dropped unless it is the only one.
func lastLines(data []byte, n int, cut bool) string {
	s := strings.TrimRight(strings.ToValidUTF8(string(data), "\uFFFD"), " \t\r\n")
	lines := strings.Split(s, "\n")
	if cut && len(lines) > 1 {
		lines = lines[1:]
	}
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}
