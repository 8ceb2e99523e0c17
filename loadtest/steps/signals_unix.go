//go:build unix

package steps

import (
	"os"
	"syscall"
)

// alone gives a child a process group of its own. Ctrl-C is not for it; and if this
// process dies while the child is paused, the system sends that SIGHUP and SIGCONT.
func alone() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func stand(p *os.Process) error   { return p.Signal(syscall.SIGSTOP) }
func carryOn(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
