//go:build !unix

package steps

import (
	"errors"
	"os"
	"syscall"
)

func alone() *syscall.SysProcAttr { return nil }

func stand(*os.Process) error   { return errors.New("processes can be paused on Unix alone") }
func carryOn(*os.Process) error { return nil }
