package pod

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"sluice.dev/sluice/internal/core/errkind"
)

// Prepare is `sluice-shim install DIRECTORY POD`: it puts the program, the certificates and the run file into the directory. sealed is the
// encrypted run file, key its key's text.
func Prepare(dir, name, sealed, key string) error {
	if err := itself(filepath.Join(dir, Program)); err != nil {
		return fmt.Errorf("copying sluice-shim: %w", err)
	}
	if err := certificates(filepath.Join(dir, Bundle)); err != nil {
		return fmt.Errorf("copying the certificates of its image: %w", err)
	}
	k, ok := ParseKey(KeyOf(sealed), key)
	if !ok {
		return errkind.Errorf(errkind.Denied, "key %q of the namespace is not one of ours: somebody has changed it", KeyOf(sealed))
	}
	plain, err := Open(&k, name, sealed)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, RunFile), plain, 0o600)
}

// Equip is `sluice-shim lend DIRECTORY TOKEN-FILE`: it puts this program, sluice, which lies beside it, and the token into the directory of
// a pilot's Pod.
func Equip(dir, token string) error {
	self, err := os.Executable()
	if err == nil {
		err = errors.Join(itself(filepath.Join(dir, Program)),
			program(filepath.Join(filepath.Dir(self), filepath.Base(Joiner)), filepath.Join(dir, Joiner)))
	}
	if err != nil {
		return fmt.Errorf("copying the programs of its image: %w", err)
	}
	text, err := os.ReadFile(token)
	if err != nil {
		return fmt.Errorf("reading the token: %w", err)
	}
	to := filepath.Join(dir, TokenFile)
	if err = os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) { // of a run before, whose mode would stay
		return err
	}
	return os.WriteFile(to, text, 0o600)
}

// itself copies this program to a path, for a container whose image lacks it.
func itself(path string) error { return program("/proc/self/exe", path) }

// program copies a program to a path.
func program(from, path string) error {
	self, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = self.Close() }()
	if err = os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	to, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755) //nolint:gosec // a program
	if err != nil {
		return err
	}
	_, err = io.Copy(to, self)
	return errors.Join(err, to.Close(), os.Rename(path+".new", path))
}

// bundle is the first place where Go looks for certificates on Linux, and where tools/image puts them.
const bundle = "/etc/ssl/certs/ca-certificates.crt"

// certificates copies this image's trusted certificates to a path: SSL_CERT_FILE, else bundle. Their absence is no error: the store may
// not use TLS, or use a certificate that the subjob's image trusts.
func certificates(path string) error {
	data, err := os.ReadFile(cmp.Or(os.Getenv("SSL_CERT_FILE"), bundle))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644) //nolint:gosec // certificates are public
}
