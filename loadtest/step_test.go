package main

import (
	"testing"

	"example.com/shop/internal/testserver"
)

func TestRun_step(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{"none"}, exitOK, "conditional:Aba: passed", ""},
		{[]string{}, exitOK, " 6  get-then-del           GET, compare, DEL", ""},
		{[]string{"--help"}, exitOK, "A timeline reads from top to bottom", ""},
		{[]string{"all", "none"}, exitUsage, "", "unexpected argument none"},
		{[]string{"none", "--nonsense"}, exitUsage, "", "--nonsense"},
		{[]string{"all", "--servers", "docker", "--redis", "127.0.0.1:1"}, exitUsage, "", "leave out"},
		{[]string{"none", "--redis", "nonsense"}, exitUsage, "", "--redis"},
		{[]string{"nonsense"}, exitUsage, "", `"nonsense" is no lesson`},
		{[]string{"redis"}, exitUsage, "", `"redis" is no lesson`},
	} {
		var stdout, stderr testserver.LogBuffer
		code := run(t.Context(), append([]string{"step"}, tt.args...), noEnv, &stdout, &stderr)
		if code != tt.code || !stdout.Has(tt.stdout) || !stderr.Has(tt.stderr) {
			t.Errorf("%v: exit code %d, want %d, and %q, %q in\n%s\n%s", tt.args, code, tt.code, tt.stdout, tt.stderr, stdout.String(), stderr.String())
		}
	}
}
