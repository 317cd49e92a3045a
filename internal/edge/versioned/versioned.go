// Package versioned reads files of JSON that say by which rules they were written. Such a file is replaced whole; any change of what it
// means raises its version, so that an earlier build, which would drop what it doesn't know, refuses it untouched.
package versioned

import (
	"encoding/json"
	"fmt"

	"sluice.dev/sluice/internal/core/errkind"
)

// Decode reads the text of the file at path into content, a pointer to what has the file's version under "version". oldest and newest are
// the versions that this build knows. Errors: Unsupported for a newer one, Corrupt for what is damaged: mend says what to do about that.
func Decode(path string, text []byte, oldest, newest int, mend string, content any) error {
	// The version first: a newer file may have another form.
	var is struct {
		Version int `json:"version"`
	}
	err := json.Unmarshal(text, &is)
	switch {
	case err != nil:
	case is.Version > newest:
		return errkind.Errorf(errkind.Unsupported, "%s is of version %d, and this build knows versions up to %d: use the build that "+
			"wrote it; nothing was changed", path, is.Version, newest)
	case is.Version < oldest:
		err = fmt.Errorf("its version is %d", is.Version)
	default:
		err = json.Unmarshal(text, content)
	}
	if err != nil {
		return Damaged(path, mend, err)
	}
	return nil
}

// Damaged is the error of a file whose content can't be.
func Damaged(path, mend string, why error) error {
	return errkind.Errorf(errkind.Corrupt, "%s is damaged: %s: %w", path, mend, why)
}
