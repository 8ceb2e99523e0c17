package main

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"example.com/shop/internal/app"
	"example.com/shop/internal/order/strategy"
)

// What teaches, and the locks and servers that the shop does not sell with, are not in the program.
func TestDependencies(t *testing.T) {
	t.Parallel()
	all, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "example.com/shop/cmd/shop").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.Lines(string(all)) {
		for _, foreign := range []string{"shop/internal/lab", "redlock", "mysqllock", "zklock", "go-zookeeper", "miniredis", "testcontainers"} {
			if strings.Contains(name, foreign) {
				t.Errorf("got %s, want nothing of %s", name, foreign)
			}
		}
	}
}

// No help says a word about teaching.
func TestHelp_sellsOnly(t *testing.T) {
	t.Parallel()
	teaching := regexp.MustCompile(`(?i)\b(teach\w*|lab|lesson\w*|learn\w*|recording\w*|think\w*|redlock|zookeeper)\b`)
	for _, command := range []string{"", "serve", "migrate", "seed", "audit", "backup", "token", "ready"} {
		r := shop(t, append(strings.Fields(command), "--help")...)
		r.want(t, app.ExitDone)
		if found := teaching.FindAllString(r.stdout, -1); found != nil {
			t.Errorf("shop %s --help: got %q", command, found)
		}
	}
}

// --strategy names what the shop may sell by, and nothing else; the default is the first.
func TestStrategies(t *testing.T) {
	t.Parallel()
	names := strings.Join(strategy.Names(), " ")
	if want := "lanes batch redis conditional optimistic for-update"; names != want || app.Default().Strategy != "lanes" {
		t.Errorf("got %q, default %s, want %s", names, app.Default().Strategy, want)
	}
	for _, wrong := range []string{"none", "mutex", "short-lease", "redlock", "zookeeper", "Lanes", "Batch"} {
		shop(t, "serve", "--strategy", wrong).want(t, app.ExitUsage, `"lanes","batch","redis","conditional","optimistic","for-update"`)
	}
}
