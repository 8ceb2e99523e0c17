package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/shop/loadtest/cli"
	"example.com/shop/loadtest/sale/load"
)

// TestMain makes the test binary the program itself where the program runs itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == nothing {
		main()
	}
	os.Exit(m.Run()) //nolint:forbidigo // this is the test binary's main
}

func TestRun_usage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--help"}, cli.OK, "Exit code"},
		{[]string{"--help"}, cli.OK, "skewed"},
		{[]string{"--rounds=1001"}, cli.Usage, "--rounds 1001"},
		{[]string{"--time", "1ms"}, cli.Usage, "--time 1ms"},
		{[]string{"--buyers", "10001"}, cli.Usage, "--buyers 10001"},
		{[]string{"--cases", "warm"}, cli.Usage, "hot-64, hot-512"},
		{[]string{"--database", "oracle"}, cli.Usage, "database"},
		{[]string{"--mysql", "a:b@tcp(c)/d"}, cli.Usage, "--database mysql"},
		{[]string{"--json", "no/such/folder/file"}, cli.Usage, "no folder"},
		{[]string{"nothing", "much"}, cli.Usage, "size"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), c.args, os.Getenv, &stdout, &stderr)
		if said := stdout.String() + stderr.String(); code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("%q: got %d, %s, want %d and %q", c.args, code, said, c.code, c.says)
		}
	}
}

// A short run of every case: shops as processes, a clean audit, and orders as
// many as acknowledged.
func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sale.json")
	args := []string{"--buyers", "2", "--time", "100ms", "--rounds", "1", "--strategies", "redis,conditional,for-update,unheard-of", "--json", file}
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), args, os.Getenv, &stdout, &stderr); code != cli.OK {
		t.Fatalf("got exit code %d, want %d\n%s%s", code, cli.OK, &stdout, &stderr)
	}
	for _, want := range []string{
		"SQLite", "left out: unheard-of: this shop does not know it", "left out: for-update: ", "to nothing", "a buyer", "grow, 2 at once",
	} {
		if !strings.Contains(stdout.String()+stderr.String(), want) {
			t.Errorf("want %q in\n%s%s", want, &stdout, &stderr)
		}
	}
	got := readReport(t, file)
	if want := len(contests(false)); len(got.Cases) != want {
		t.Errorf("got %d cases, want %d", len(got.Cases), want)
	}
	for _, c := range got.Cases {
		if len(c.Rows) != 3 || !c.right() {
			t.Errorf("%s: got %d rows, right %v, want redis, conditional and nothing, right", c.Name, len(c.Rows), c.right())
		}
		for _, r := range c.Rows {
			one := r.Rounds[0]
			sold, refused := one.Orders > 0, one.Refusals > 0
			if want := c.Name == "soldout" && r.Name != nothing; sold == want || refused != want || one.Errors > 0 {
				t.Errorf("%s, %s: got %+v", c.Name, r.Name, one)
			}
		}
	}
}

// "count as many orders as were acknowledged (and, after an unknown outcome, at
// most one more for each)"
func TestDisagree(t *testing.T) {
	t.Parallel()
	told := load.Counts{Orders: 10, Unknown: 2}
	for orders, right := range map[int64]bool{9: false, 10: true, 12: true, 13: false} {
		if wrong := disagree(orders, told); (wrong == "") != right {
			t.Errorf("%d orders: got %q", orders, wrong)
		}
	}
}

// "10,000 buyers can wait for one instance at once: each takes less than 64 KB,
// connection included, and all are answered": the whole process grows by no more.
func TestRun_crowd(t *testing.T) {
	if testing.Short() {
		t.Skip("10,000 orders")
	}
	file := filepath.Join(t.TempDir(), "sale.json")
	args := []string{"--cases", "grow", "--buyers", "10000", "--strategies", "lanes", "--json", file}
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), args, os.Getenv, &stdout, &stderr); code != cli.OK {
		t.Fatalf("got exit code %d, want %d\n%s%s", code, cli.OK, &stdout, &stderr)
	}
	t.Logf("%s", &stdout)
	one := readReport(t, file).Cases[0].Rows[0].Rounds[0]
	if one.Orders != 10_000 || one.Errors > 0 {
		t.Errorf("got %d orders and %d errors, the first %s; want 10,000 and none", one.Orders, one.Errors, one.FirstError)
	}
	if each := (one.PeakBytes - one.IdleBytes) / 10_000; one.PeakBytes > 0 && each >= 64<<10 {
		t.Errorf("got %d bytes for each waiting buyer, want less than 64 KB", each)
	}
}

func readReport(t *testing.T, file string) report {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got report
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	return got
}
