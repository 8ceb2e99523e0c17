package auth

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// KeptSecret reads the secret in a file as ReadSecretFile does, and makes a random
// one where there is no file, of mode 0600. Of two that make it at once, both
// return the same.
func KeptSecret(path string) (Secret, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if err := makeSecretFile(path); err != nil && !errors.Is(err, fs.ErrExist) {
			return Secret{}, fmt.Errorf("%w: %w: make one: %w", ErrSecret, ErrSecretFile, err)
		}
	}
	return ReadSecretFile(path)
}

// makeSecretFile shows the file under its name when it is complete.
func makeSecretFile(path string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-") // mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	bits := make([]byte, MinSecret)
	rand.Read(bits)
	_, err = fmt.Fprintln(f, base64.StdEncoding.EncodeToString(bits))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), path)
}
