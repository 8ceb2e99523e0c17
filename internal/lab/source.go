package lab

import (
	"embed"
	"path"
	"slices"
	"strings"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/redlock"
	"example.com/shop/internal/order/lane"
	"example.com/shop/internal/order/strategy"
)

//go:embed wronglocks.go
var sources embed.FS

// Source returns a file in which the line of a recording can be, by its name there.
func Source(file string) ([]byte, error) {
	folders := map[string]embed.FS{"internal/order/strategy": strategy.Sources, "internal/order/lane": lane.Sources, "internal/lab": sources}
	return folders[path.Dir(file)].ReadFile(path.Base(file))
}

// Script returns the Lua source of a command in a recording, such as "EVALSHA release lock:{sku:mug} ATQ4Z2…"; empty if it
// has none.
func Script(command string) string {
	words := append(strings.Fields(command), "", "", "")
	name, key := words[1], words[2]
	scripts := slices.Concat(lock.Scripts(), Scripts())
	if strings.HasPrefix(key, "redlock:") {
		scripts = redlock.Scripts()
	}
	for _, s := range scripts {
		if s.Name == name {
			return s.Source
		}
	}
	return ""
}
