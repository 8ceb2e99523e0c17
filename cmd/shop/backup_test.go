package main

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/shop/internal/app"
)

// A test runs the commands of "Back up and restore" in docs/operations.md while the shop sells: the copy has the newest
// order, and its shop knows the old tokens.
func TestBackup(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Back up and restore\n")
	section, _, _ = strings.Cut(section, "\n## ")
	commands := strings.Join(regexp.MustCompile(`(?m)^    .*$`).FindAllString(section, -1), "\n")
	dir := t.TempDir()
	s := startShop(t, "--data", filepath.Join(dir, "data"))
	ann := s.shown(t, "TOKEN=")
	buy(s.url, "newest", ann).Want(t, http.StatusCreated)

	said := shell(t, "cd "+dir+"\nln -s "+binary+" shop\n"+commands)
	for _, want := range []string{"monday.db is a copy of the sqlite file", "1 order line, 1 unit ordered", " 0 differences"} {
		if !strings.Contains(said, want) {
			t.Errorf("got %s\nof %s\nwant %q in it", said, commands, want)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "restored", "shop.db"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want a file of mode 0600", info, err)
	}
	restored := startShop(t, "--data", filepath.Join(dir, "restored"))
	replay := buy(restored.url, "newest", ann).Want(t, http.StatusCreated)
	if replay.Header.Get("Idempotent-Replayed") != "true" {
		t.Error("got a new order of the restored shop, want the old one")
	}
}

// "FILE appears, with mode 0600, once the copy is complete and on disk; nothing is overwritten."
func TestBackup_all_or_nothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, there := filepath.Join(dir, "data"), filepath.Join(dir, "there")
	shop(t, "seed", "--data", data, "--sku", "mug", "--units", "3").want(t, app.ExitDone)
	if err := os.WriteFile(there, []byte("of old"), 0o600); err != nil {
		t.Fatal(err)
	}
	shop(t, "backup", "--data", data, there).want(t, app.ExitFailed, there+" already exists")
	shop(t, "backup", "--data", there, filepath.Join(dir, "new")).want(t, app.ExitFailed, "no shop in "+there)
	backup := "shop backup --data " + data + " "
	said := shell(t, backup+filepath.Join(dir, "first")+"; ulimit -f 200; "+backup+filepath.Join(dir, "cut")+" 2>&1 || true")
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if text, _ := os.ReadFile(there); err != nil || string(text) != "of old" || len(left) != 3 {
		t.Errorf("got %v, %v after %s, want data, there as it was, and first", left, err, said)
	}
}
