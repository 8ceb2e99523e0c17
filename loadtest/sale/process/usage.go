package process

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor time in /proc on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// Memory is what a process has in RAM, in bytes.
type Memory struct {
	Now, Peak int64 // Peak since ForgetPeak, or the start
}

// Memory reads /proc, which Linux alone has.
func (p *Process) Memory() (Memory, error) {
	text, err := os.ReadFile(p.proc("status"))
	if err != nil {
		return Memory{}, fmt.Errorf("memory of process %d: %w", p.PID(), err)
	}
	var m Memory
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			m.Now = kb << 10
		case "VmHWM":
			m.Peak = kb << 10
		}
	}
	return m, nil
}

// ForgetPeak lets the peak begin anew.
func (p *Process) ForgetPeak() error { return os.WriteFile(p.proc("clear_refs"), []byte("5"), 0) }

// CPU is the processor time that the process used since its start; 0 if the
// operating system is not Linux.
func (p *Process) CPU() time.Duration {
	text, err := os.ReadFile(p.proc("stat"))
	if err != nil {
		return 0
	}
	// The program's name, in brackets, may hold blanks.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	const user, system = 11, 12
	if len(fields) <= system {
		return 0
	}
	a, _ := strconv.ParseInt(fields[user], 10, 64)
	b, _ := strconv.ParseInt(fields[system], 10, 64)
	return time.Duration(a+b) * tick
}

func (p *Process) proc(file string) string { return fmt.Sprintf("/proc/%d/%s", p.PID(), file) }
