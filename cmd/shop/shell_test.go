package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// shell runs a script in a shell that has shop and curl, and returns what it prints.
func shell(t *testing.T, script string, variables ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	sh := exec.CommandContext(ctx, "sh", "-eu", "-c", script)
	sh.WaitDelay = time.Second // for what it has started
	sh.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
	sh.Env = append(sh.Env, variables...)
	out, err := sh.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s\nof: %s", err, out, script)
	}
	return string(out)
}
