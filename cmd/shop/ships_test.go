package main

import (
	"os/exec"
	"strings"
	"testing"
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
