//go:build unix

package step

import (
	"os"
	"syscall"
)

// ownGroup gives a child a process group of its own: Ctrl-C does not reach it, and if this process dies while the child
// is paused, the system sends the child SIGHUP and SIGCONT.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// suspend stops a process as it stands: not one instruction more.
func suspend(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
func carryOn(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
