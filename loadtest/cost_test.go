package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/shop/loadtest/cli"
	"example.com/shop/loadtest/shops"
)

// What this test's program does when it is started once more, beside itself.
const (
	childRole = "LOADTEST_CHILD"
	asShop    = "shop"
	asRace    = "race"
	childArgs = "LOADTEST_ARGS"
)

// TestChild is no test: it is what a child process of one does.
func TestChild(t *testing.T) {
	switch os.Getenv(childRole) {
	case asShop:
		set, err := shops.Instances{Count: 1}.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(set.URLs[0])
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent is gone
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	case asRace:
		if code := run(t.Context(), strings.Fields(os.Getenv(childArgs)), noEnv, os.Stdout, os.Stderr); code != cli.OK {
			t.Errorf("exit code: got %d, want %d", code, cli.OK)
		}
	default:
		t.Skip("for child processes")
	}
}

// child is this program once more; it ends with the test.
func child(t *testing.T, ctx context.Context, role string, args ...string) *exec.Cmd { //nolint:revive // t first, as everywhere in tests
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(ctx, program, "-test.run=^TestChild$", "-test.timeout=5m")
	c.Env = append(os.Environ(), childRole+"="+role, childArgs+"="+strings.Join(args, " "))
	c.Stderr = os.Stderr
	return c
}

// shopBeside starts a shop in a process of its own and returns its URL.
func shopBeside(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Minute)
	c := child(t, ctx, asShop)
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	t.Cleanup(func() {
		defer cancel()
		_ = stdin.Close()
		for lines.Scan() { // to its end, or Wait would cut it off
		}
		if err := c.Wait(); err != nil {
			t.Errorf("shop: %v", err)
		}
	})
	if !lines.Scan() {
		t.Fatalf("the shop tells no URL: %v", lines.Err())
	}
	return lines.Text()
}

// "Against shops in processes of their own (--target), 100,000 requests keep the
// load test below 200 MB. Its memory and its share of the processor are in the
// report."
func TestRun_hundredThousand(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	const most = 200
	requests, stock := int64(100_000), int64(5_000)
	if raceDetector {
		requests, stock = 2_000, 200
	}
	url := shopBeside(t)
	file := filepath.Join(t.TempDir(), "report.json")
	race := child(t, t.Context(), asRace, "--target", url, "--strategies", "lanes", "--buyers", "100", "--stock", fmt.Sprint(stock),
		"--requests", fmt.Sprint(requests), "--think", "0s", "--timeout", "4m", "--json", file)
	if out, err := race.Output(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r := readReport(t, file)
	s, cost := r.Strategies[0], r.Harness
	if s.Acknowledged != stock || s.Acknowledged+s.Refused != requests || s.Errors > 0 || !s.Correct() {
		t.Errorf("got %d orders, %d refused, %d errors, %s; want %d orders of %d requests, correct", s.Acknowledged, s.Refused, s.Errors, s.Verdict, stock, requests)
	}
	if cost == nil || cost.WithShops || cost.PeakMemoryMB <= 0 || cost.PeakMemoryMB > most && !raceDetector || cost.CPUSeconds <= 0 || cost.CPUShare <= 0 || cost.CPUShare > 1 {
		t.Fatalf("cost: got %+v, want that of the load test alone, below %d MB", cost, most)
	}
	t.Logf("%d requests in %.1f s: %s", requests, s.Seconds, cost.Says())
}
