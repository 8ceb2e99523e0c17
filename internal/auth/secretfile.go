package auth

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// tooOpen are the permissions that a secret's file must not give: any to
// everybody, and to its group that of writing it.
const tooOpen = 0o027

// ReadSecretFile takes the secret from a file: its text, without the end of line
// that editors add. The file may be a link, as orchestrators make them, must be a
// regular file in the end, and must give nothing to others. Errors match
// ErrSecret and, where the file and not the text is to blame, ErrSecretFile and
// the cause, such as fs.ErrNotExist.
func ReadSecretFile(path string) (Secret, error) {
	text, err := readSmall(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Secret{}, fmt.Errorf("%w: %w: %w; make one with: (umask 077; openssl rand -base64 32 > %s)", ErrSecret, ErrSecretFile, err, path)
	}
	if err != nil {
		return Secret{}, fmt.Errorf("%w: %w: %w", ErrSecret, ErrSecretFile, err)
	}
	secret, err := NewSecret(strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r"))
	if errors.Is(err, ErrSecretNone) {
		return Secret{}, fmt.Errorf("%w: %s is empty; %s", err, path, howToMake)
	}
	if err != nil {
		return Secret{}, fmt.Errorf("%w; it is in %s", err, path)
	}
	return secret, nil
}

// readSmall reads a file of which more than a secret's length is not worth
// having. It looks before it opens: a pipe would keep it waiting.
func readSmall(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s: %v: want a regular file", path, info.Mode())
	}
	if mode := info.Mode().Perm(); mode&tooOpen != 0 {
		return "", fmt.Errorf("%s: others than its owner may use it (mode %04o): want 0600 or 0640, as after: chmod 600 %s", path, mode, path)
	}
	f, err := os.Open(path) //nolint:gosec // the operator names it
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxSecret+3)) // an end of line, and one to see that it is too long
	return string(text), err
}
