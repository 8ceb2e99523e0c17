package shops

import (
	"net/http"
	"os"
	"testing"

	"go.uber.org/goleak"

	"example.com/shop/internal/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testserver.Wrap(m)) }

// "fresh for each race, in a temporary folder that Close removes".
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
	if _, err := (Instances{Count: 1, Servers: Servers{Redis: "not an address"}}).Open(t.Context()); err == nil {
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
