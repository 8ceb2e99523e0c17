package main

import (
	"path/filepath"
	"strings"
	"testing"

	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/logs/logbook"
	"example.com/shop/loadtest/cli"
	"example.com/shop/loadtest/report"
)

// The main job on real servers, at its full size: the strategies that read and
// then write oversell, the one that promises is correct.
func TestRun_servers(t *testing.T) {
	for name, dsn := range map[string]func(testing.TB) string{"MySQL": testserver.MySQL, "MariaDB": testserver.MariaDB} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "report.json")
			var stdout, stderr logbook.Book
			code := run(t.Context(), []string{"--mysql", dsn(t), "--redis", testserver.Redis(t), "--buyers", "300", "--json", file}, noEnv, &stdout, &stderr)
			if code != cli.OK {
				t.Fatalf("exit code: got %d, want %d; stderr:\n%s", code, cli.OK, stderr.String())
			}
			verdicts := map[string]report.Strategy{}
			r := readReport(t, file)
			if m := r.Machine; !strings.HasPrefix(m.DatabaseVersion, name+" ") || !strings.HasPrefix(m.RedisVersion, "Redis ") || strings.Contains(m.RedisVersion, "protocol") {
				t.Errorf("versions: got %q, %q, want those of %s and Redis", m.DatabaseVersion, m.RedisVersion, name)
			}
			for _, s := range r.Strategies {
				sound(t, s, 300)
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
