package main

import (
	"os/exec"
	"strings"
	"testing"
)

// The program contains no teaching code, and no locks or servers that the shop does not sell with.
func TestDependencies(t *testing.T) {
	t.Parallel()
	all, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "example.com/shop/cmd/shop").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.Lines(string(all)) {
		for _, foreign := range []string{"shop/internal/lab", "redsync", "mysqllock", "zklock", "go-zookeeper", "miniredis", "testcontainers"} {
			if strings.Contains(name, foreign) {
				t.Errorf("got %s, want nothing of %s", name, foreign)
			}
		}
	}
}
