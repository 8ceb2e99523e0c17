//go:build !unix

package step

import (
	"errors"
	"os"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr    { return nil }
func pauseProcess(*os.Process) error    { return errors.New("processes can be paused on Unix alone") }
func continueProcess(*os.Process) error { return nil }
