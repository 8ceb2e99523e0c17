package auth_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"example.com/shop/internal/auth"
)

// "Makes a random one where there is no file, of mode 0600. Of two that make it at
// once, both return the same."
func TestKeptSecret(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "token.secret")
	made := make([]auth.Secret, 8)
	var all sync.WaitGroup
	for i := range made {
		all.Go(func() {
			var err error
			if made[i], err = auth.KeptSecret(path); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	again, err := auth.ReadSecretFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range made {
		if secret.IsZero() || secret != again {
			t.Error("got different secrets of one file, want one")
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v, want 0600", info.Mode(), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("got %v, %v, want the file alone", left, err)
	}
	other, err := auth.KeptSecret(filepath.Join(dir, "operator.token"))
	if err != nil || other == again {
		t.Errorf("got the same secret in another file, %v", err)
	}
}

// "Reads the secret in a file as ReadSecretFile does": what is wrong is told, and
// never replaced.
func TestKeptSecret_bad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	if err := os.WriteFile(open, []byte(secretText), 0o644); err != nil {
		t.Fatal(err)
	}
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink(filepath.Join(dir, "gone"), dangling); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{open, dangling, filepath.Join(dir, "absent", "secret")} {
		if _, err := auth.KeptSecret(path); !errors.Is(err, auth.ErrSecretFile) {
			t.Errorf("%s: got %v, want ErrSecretFile", path, err)
		}
	}
}

// "Is compares in a time that does not tell how much of it is right."
func TestSecret_Is(t *testing.T) {
	t.Parallel()
	secret, err := auth.NewSecret(secretText)
	if err != nil {
		t.Fatal(err)
	}
	if !secret.Is(secret.Reveal()) || secret.Reveal() != secretText {
		t.Error("got that a secret is not itself")
	}
	for _, text := range []string{"", secretText[1:], secretText + "x", secretText + secretText} {
		if secret.Is(text) {
			t.Errorf("got that the secret is %q", text)
		}
	}
	if (auth.Secret{}).Is("") {
		t.Error("got that no secret is the empty text")
	}
}
