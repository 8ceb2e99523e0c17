package process

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

func shell(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh here")
	}
	return path
}

func TestStart(t *testing.T) {
	t.Parallel()
	p, err := Start(t.Context(), shell(t), []string{"-c", `echo first; echo "open at $WHERE"; exec sleep 60`}, []string{"WHERE=home"}, "open at ")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	if p.Greeting != "home" {
		t.Errorf("got %q, want home", p.Greeting)
	}
	if runtime.GOOS != "linux" {
		return
	}
	if err := p.ForgetPeak(); err != nil && !os.IsPermission(err) {
		t.Error(err)
	}
	if m, err := p.Memory(); err != nil || m.Now <= 0 || m.Peak < m.Now {
		t.Errorf("got %+v, %v, want some memory", m, err)
	}
}

// A program that ends instead of serving says why.
func TestStart_ends(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), shell(t), []string{"-c", "echo no luck >&2"}, nil, "open at ")
	if err == nil || !strings.Contains(err.Error(), "no luck") {
		t.Errorf("got %v, want its last words", err)
	}
}
