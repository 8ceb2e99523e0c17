package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"example.com/shop/loadtest/peers/peer"
	"example.com/shop/loadtest/peers/server"
)

// machine is what the figures depend on. What is not known is empty.
type machine struct {
	CPU    string            `json:"cpu"`
	Cores  int               `json:"cores"`
	OS     string            `json:"os"`
	Kernel string            `json:"kernel"`
	Go     string            `json:"go"`
	Redis  string            `json:"redis"`
	Peers  map[string]string `json:"peers"` // versions
	Load   string            `json:"load"`  // of the machine before the run: over 1, 5 and 15 minutes
}

func look(ctx context.Context, s *server.Server) (machine, error) {
	version, err := server.Version(ctx, s.Addr)
	if err != nil {
		return machine{}, fmt.Errorf("redis at %s: %w", s.Addr, err)
	}
	return machine{
		CPU:    cpuModel(),
		Cores:  runtime.GOMAXPROCS(0),
		OS:     runtime.GOOS + "/" + runtime.GOARCH,
		Kernel: firstWords("/proc/sys/kernel/osrelease", 1),
		Go:     runtime.Version(),
		Redis:  version + ", " + s.Kind,
		Peers:  versions(),
		Load:   firstWords("/proc/loadavg", 3),
	}, nil
}

// cpuModel reads what Linux tells; elsewhere the file is not there.
func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ":")
		if strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func firstWords(file string, n int) string {
	text, err := os.ReadFile(file) //nolint:gosec // named by this file
	if err != nil {
		return ""
	}
	words := strings.Fields(string(text))
	return strings.Join(words[:min(n, len(words))], " ")
}

// versions returns those of the libraries that this program was built with.
func versions() map[string]string {
	found := make(map[string]string)
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return found
	}
	for _, p := range peer.All() {
		for _, m := range info.Deps {
			if m.Path == p.Module {
				found[p.Name] = m.Path + " " + m.Version
			}
		}
	}
	return found
}
