package status

import "strings"

// quoting are the words in a reason behind which it quotes what a subjob has written, or what was said about one with such a quotation.
var quoting = [...]string{ //nolint:gochecknoglobals // read-only by use; Go has no constant arrays
	"without progress: ", "from outside: ", "runs alone: ", "may be skipped: ", "in a row ("}

// Unquoted is a reason up to where it quotes what a subjob has written, such as the last lines of its stderr: those are for people who may
// read its logs.
func Unquoted(reason string) string {
	end := len(reason)
	for _, words := range quoting {
		if i := strings.Index(reason, words); i >= 0 {
			end = min(end, i+len(words)-2)
		}
	}
	return reason[:end]
}
