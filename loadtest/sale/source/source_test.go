package source

import (
	"strings"
	"testing"
)

// "refuses to call it durable" unless every commit is flushed.
func TestCommits_String(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		commits commits
		want    string
	}{
		{commits{version: "9.7", flush: 1, sync: 1, binlog: true}, "9.7, durable commits (innodb_flush_log_at_trx_commit=1, log_bin=ON, sync_binlog=1)"},
		{commits{version: "10.11", flush: 1, sync: 0, binlog: false}, "10.11, durable commits (innodb_flush_log_at_trx_commit=1, log_bin=OFF, sync_binlog=0)"},
		{commits{version: "9.7", flush: 1, sync: 0, binlog: true}, "9.7, NOT durable commits (innodb_flush_log_at_trx_commit=1, log_bin=ON, sync_binlog=0)"},
		{commits{version: "9.7", flush: 2, sync: 1, binlog: true}, "9.7, NOT durable commits (innodb_flush_log_at_trx_commit=2, log_bin=ON, sync_binlog=1)"},
	} {
		if got := c.commits.String(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestRedisVersion(t *testing.T) {
	t.Parallel()
	for info, want := range map[string]string{
		"# Server\r\nredis_version:8.0.2\r\n":                         "Redis 8.0.2",
		"# Server\r\nredis_version:7.2.4\r\nvalkey_version:9.1.0\r\n": "Valkey 9.1.0",
	} {
		if got := redisVersion(info); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Whatever this machine has, there is a Redis in the end.
func TestOpenRedis(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("SHOP_TEST_REDIS_IMAGE", "127.0.0.1:1/no/such:image")
	r, err := OpenRedis(t.Context(), "", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.About, "embedded") {
		t.Errorf("got %q, want the embedded one to say so", r.About)
	}
	if err := r.Stop(); err != nil {
		t.Error(err)
	}
}
