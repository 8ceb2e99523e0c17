package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"example.com/shop/internal/lock/testserver"
	"example.com/shop/loadtest/report"
)

// The main job on real servers, at its full size: the strategies that read and
// then write oversell, the one that promises is correct.
func TestRun_servers(t *testing.T) {
	for name, dsn := range map[string]func(testing.TB) string{"MySQL": testserver.MySQL, "MariaDB": testserver.MariaDB} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "report.json")
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), []string{"--mysql", dsn(t), "--redis", testserver.Redis(t), "--json", file}, noEnv, &stdout, &stderr)
			if code != exitOK {
				t.Fatalf("exit code: got %d, want %d; stderr:\n%s", code, exitOK, stderr.String())
			}
			verdicts := map[string]report.Strategy{}
			for _, s := range readReport(t, file).Strategies {
				sound(t, s, 1000)
				verdicts[s.Name] = s
			}
			for _, wrong := range []string{"none", "mutex"} {
				if s := verdicts[wrong]; s.Oversold == 0 || s.Verdict != "oversold" {
					t.Errorf("%s: got %+v, want it to oversell", wrong, s)
				}
			}
			if s := verdicts["redis"]; s.UnitsSold != 100 || s.Verdict != "correct" {
				t.Errorf("redis: got %+v, want 100 units sold", s)
			}
			t.Log("\n" + stdout.String())
		})
	}
}
