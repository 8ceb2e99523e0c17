//go:build unix

package step

import (
	"os"
	"syscall"
)

// ownGroup gives a child a process group of its own: Ctrl-C does not reach it, and if this process dies while the child
// is paused, the system sends the child SIGHUP and SIGCONT.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func pauseProcess(p *os.Process) error    { return p.Signal(syscall.SIGSTOP) }
func continueProcess(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
