package provider

import (
	"regexp"
	"strings"
)

// MostPool is the longest name of a pool, in bytes: with the random part of a pilot's it is that of a machine and of a host's job.
const MostPool = 20

// SoundPool reports whether a pool may be called so: lower-case letters, digits and hyphens, first a letter, last no hyphen.
func SoundPool(name string) bool {
	return name != "" && len(name) <= MostPool && name[0] >= 'a' && name[0] <= 'z' && !strings.HasSuffix(name, "-") &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

var amountForm = regexp.MustCompile(`^[0-9]{1,15}(\.[0-9]{1,9})?(m|[kMGTPE]|[KMGTPE]i)?$`)

// SoundAmount reports whether a text is an amount as Kubernetes writes them, such as 1, 500m or 4Gi.
func SoundAmount(s string) bool { return amountForm.MatchString(s) }
