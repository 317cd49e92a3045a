package pod

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// keyComes is how long a key is waited for: a kubelet may show a Secret as it was some moments ago.
const keyComes = time.Minute

// Prepare is `sluice-shim install DIRECTORY KEYS POD`: the program and the run file of the Pod are in the directory then. sealed is the latter, and KEYS has the keys, by their IDs.
func Prepare(dir, keys, name, sealed string) error {
	if err := itself(filepath.Join(dir, Program)); err != nil {
		return fmt.Errorf("copying sluice-shim: %w", err)
	}
	secret, err := await(filepath.Join(keys, filepath.Base(KeyOf(sealed))))
	if err != nil {
		return fmt.Errorf("reading the key that the run file is sealed with: %w", err)
	}
	plain, err := Open(&Key{ID: KeyOf(sealed), Secret: secret}, name, sealed)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, RunFile), plain, 0o600)
}

// await reads a file that may come late.
func await(path string) ([]byte, error) {
	for end := time.Now().Add(keyComes); ; time.Sleep(tick) {
		data, err := os.ReadFile(path)
		if !errors.Is(err, fs.ErrNotExist) || time.Now().After(end) {
			return data, err
		}
	}
}

// itself copies the program to a path, where a container finds it that has none.
func itself(path string) error {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer func() { _ = self.Close() }()
	if err = os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	to, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755) //nolint:gosec // it is a program
	if err != nil {
		return err
	}
	_, err = io.Copy(to, self)
	return errors.Join(err, to.Close(), os.Rename(path+".new", path))
}
