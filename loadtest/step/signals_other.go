//go:build !unix

package step

import (
	"errors"
	"os"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr { return nil }
func suspend(*os.Process) error      { return errors.New("processes can be paused on Unix alone") }
func carryOn(*os.Process) error      { return nil }
