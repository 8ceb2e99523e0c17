package zklock_test

import (
	"strings"
	"testing"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/lock/zklock"
)

// "Any key makes one node": no two keys meet, none is refused, and none gets out
// of the root.
func TestBackend_AnyKey(t *testing.T) {
	t.Parallel()
	addr, root := testserver.ZooKeeper(t), newRoot()
	nodes := lookAt(t, addr)
	locker := newLocker(t, connect(t, addr, zklock.Options{Root: root}), lock.Options{})
	keys := []string{
		"sku:42", "a/b", "/a/b", "a/b/", "a//b", "a%2Fb", "/", "//", ".", "..", "...", "../..", "a.b", "./a",
		"zookeeper", " ", "a b", "a\x00b", "\x1f\x7f", "größe", "g\xc3\xb6", "g\xc3", "\xff\xfe", "🙂", "\u200b",
		"\ufff0", "\ue000", "%", "%%", "%2F", "-0000000001", "a-0000000001", "~", "{}", strings.Repeat("/", lock.MaxKey),
	}
	var leases []*lock.Lease
	for _, key := range keys { // each is free though all others are held
		lease, err := locker.TryAcquire(bounded(t), key)
		if err != nil {
			t.Errorf("TryAcquire(%q): %v", key, err)
			continue
		}
		leases = append(leases, lease)
	}
	if got := nodes.under(root); len(got) != len(keys) {
		t.Errorf("got %d nodes, want %d: %q", len(got), len(keys), got)
	}
	for _, lease := range leases {
		if err := lease.Release(); err != nil {
			t.Errorf("Release: %v", err)
		}
	}
}

func TestOwnedBy(t *testing.T) {
	for owner, want := range map[string]string{"a": "a-0000000003", "a-": "a--0000000001", "ab": "ab-0000000007"} {
		if got := zklock.OwnedBy(line, owner); len(got) != 1 || got[0] != want {
			t.Errorf("OwnedBy(%q): got %q, want %q", owner, got, want)
		}
	}
	for _, owner := range []string{"", "b", "A", "a--", "abc", "a-0000000003", "lost+found", "*"} {
		if got := zklock.OwnedBy(line, owner); len(got) != 0 {
			t.Errorf("OwnedBy(%q): got %q, want none", owner, got)
		}
	}
}

func TestBefore(t *testing.T) {
	for mine, want := range map[string]string{
		"ab-0000000007": "a-0000000003", "a-0000000003": "a--0000000001", "a--0000000001": "",
	} {
		if got, ok := zklock.Before(line, mine); got != want || !ok {
			t.Errorf("Before(%q): got %q, %t; want %q", mine, got, ok, want)
		}
	}
	for _, mine := range []string{"", "c-0000000009", "lost+found", "a-2147483648"} {
		if got, ok := zklock.Before(line, mine); ok {
			t.Errorf("Before(%q): got %q, want that it is not there", mine, got)
		}
	}
}

// line is in no order, and has nodes that no Backend made.
var line = []string{
	"a-0000000003", "a--0000000001", "ab-0000000007", "lost+found", "-0000000000", "a-2147483648", "a-+000000002",
}

func FuzzEscape(f *testing.F) {
	f.Add("a/b", "a%2Fb")
	f.Add("", "%")
	f.Add(".", "%2E")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := zklock.Escape(a), zklock.Escape(b)
		if (a == b) != (x == y) {
			t.Errorf("%q and %q become %q and %q", a, b, x, y)
		}
		if x == "" || x[0] == '.' || strings.ContainsFunc(x, func(r rune) bool { return r <= ' ' || r > '~' || r == '/' }) {
			t.Errorf("%q becomes %q", a, x)
		}
	})
}
