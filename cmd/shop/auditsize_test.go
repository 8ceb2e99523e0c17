package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/dustin/go-humanize"

	"example.com/shop/internal/app"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
	"example.com/shop/internal/testserver"
)

// auditOrders is 1,000,000 in `make audit-million`.
var auditOrders = flag.Int("audit-orders", 2_000, "orders in the database of the test of the audit's size")

// auditMemory is what `shop audit` may use, whatever the number of orders.
const auditMemory = 100 << 20

// "Streams: its memory does not grow with the number of orders", nor with that
// of differences. Time and memory are those of a process of the real program.
func TestAudit_size(t *testing.T) {
	program := filepath.Join(t.TempDir(), "shop")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for _, kind := range []struct {
		name string
		open func(t *testing.T) (db *store.Store, flags []string, err error)
	}{
		{"SQLite", func(t *testing.T) (*store.Store, []string, error) {
			data := t.TempDir()
			db, err := store.SQLite(t.Context(), app.DatabaseFile(data), store.Options{})
			return db, []string{"--data", data}, err
		}},
		{"MySQL", func(t *testing.T) (*store.Store, []string, error) {
			dsn := testserver.MySQL(t)
			db, err := store.MySQL(t.Context(), dsn, store.Options{})
			return db, []string{"--mysql", dsn}, err
		}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			db, flags, err := kind.open(t)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := storetest.Fill(t.Context(), db, *auditOrders); err != nil {
				t.Fatal(err)
			}
			measure(t, program, exitDone, flags...)
			// More differences than orders.
			if _, err := db.DB().ExecContext(t.Context(), "UPDATE orders SET status = 'lost' WHERE status = 'paid'"); err != nil {
				t.Fatal(err)
			}
			var report struct {
				Differences []struct{}
				Truncated   bool
			}
			if err := json.Unmarshal(measure(t, program, exitFailed, append(flags, "--json")...), &report); err != nil {
				t.Fatal(err)
			}
			if len(report.Differences) != 1_000 || !report.Truncated {
				t.Errorf("got %d differences, truncated %v; want the first 1,000 of them", len(report.Differences), report.Truncated)
			}
		})
	}
}

// measure runs shop audit and returns the end of what it printed.
func measure(t *testing.T, program string, code int, flags ...string) (printed []byte) {
	t.Helper()
	c := command(t, []string{asMeter + "=1"}, append([]string{program, "audit"}, flags...)...)
	var stdout, stderr tail
	c.Stdout, c.Stderr = &stdout, &stderr
	began := time.Now()
	if err := c.Run(); err != nil && c.ProcessState == nil {
		t.Fatal(err)
	}
	took := time.Since(began).Round(10 * time.Millisecond)
	if got := c.ProcessState.ExitCode(); got != code {
		t.Fatalf("got exit code %d, want %d: %s", got, code, stderr)
	}
	var memory uint64
	if _, err := fmt.Sscanf(string(stderr), "%d", &memory); err != nil {
		t.Fatalf("no memory in %q: %v", stderr, err)
	}
	t.Logf("shop audit %v: %v, %s of memory", flags[2:], took, humanize.IBytes(memory))
	if memory > auditMemory {
		t.Errorf("got %s of memory, want at most %s", humanize.IBytes(memory), humanize.IBytes(auditMemory))
	}
	return stdout
}

// asMeter makes the test binary run the program that is named on its command
// line, and print on standard error how many bytes of memory it had at most. The
// kernel counts what the parent had, too, when it started a process: the meter
// has little, a test that has run others has not.
const asMeter = "SHOP_TEST_AS_METER"

func meter(args []string) (code int) {
	c := exec.CommandContext(context.Background(), args[0], args[1:]...)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	if err := c.Run(); err != nil && c.ProcessState == nil {
		fmt.Fprintln(os.Stderr, err)
		return exitUsage
	}
	fmt.Fprintln(os.Stderr, c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss<<10)
	return c.ProcessState.ExitCode()
}

// tail keeps the end of what is written: a report, not a million lines.
type tail []byte

func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	if beyond := len(*t) - 1<<20; beyond > 0 {
		*t = append((*t)[:0], (*t)[beyond:]...)
	}
	return len(p), nil
}
