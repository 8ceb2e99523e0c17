package shops

import (
	"net/http"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// doc.go: "fresh for each race, in a temporary folder that Close removes".
func TestInstances_Open(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	set, err := Instances{Count: 3}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, url := range set.URLs {
		seen[url] = true
		resp, err := http.Get(url + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: got status %d, want 200", url, resp.StatusCode)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	if len(seen) != 3 {
		t.Errorf("addresses: got %v, want 3 different ones", set.URLs)
	}
	if err := set.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := set.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	empty(t, temp)
}

func TestInstances_Open_leaves_nothing_behind_when_it_fails(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	if _, err := (Instances{Count: 1, Redis: "not an address"}).Open(t.Context()); err == nil {
		t.Error("error: got nil, want one for the Redis address")
	}
	empty(t, temp)
}

func empty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("left behind: got %v, want nothing", left)
	}
}

func TestInstances_Stores(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from            Instances
		database, redis string
	}{
		"embedded": {Instances{}, "SQLite, embedded", "Redis protocol, embedded"},
		"real servers, without passwords": {
			Instances{MySQL: "shop:secret@tcp(db:3306)/shop", Redis: "redis://:secret@cache:6379/0"},
			"MySQL or MariaDB at db:3306/shop", "Redis at cache:6379",
		},
		"a running shop": {Instances{Target: "http://lb"}, "behind http://lb", "behind http://lb"},
	} {
		if database, redis := c.from.Stores(); database != c.database || redis != c.redis {
			t.Errorf("%s: got %q, %q, want %q, %q", name, database, redis, c.database, c.redis)
		}
	}
}
