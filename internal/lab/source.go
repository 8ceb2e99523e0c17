package lab

import (
	"embed"
	"fmt"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/order/batch"
	"example.com/shop/internal/order/strategy"
)

//go:embed wronglocks.go late_payment.go get_lock.go
var sources embed.FS

// Source returns a file in which the line of a recording can be, by its name there.
func Source(file string) ([]byte, error) {
	folders := map[string]embed.FS{"internal/order/strategy": strategy.Sources, "internal/order/batch": batch.Sources, "internal/lab": sources}
	return folders[path.Dir(file)].ReadFile(path.Base(file))
}

// Script returns the Lua source of a command in a recording, such as "EVALSHA release lock:{sku:mug}
// ATQ4Z2…"; empty if it has none.
func Script(command string) string {
	words := append(strings.Fields(command), "", "", "")
	name, key := words[1], words[2]
	scripts := append(slices.Concat(lock.Scripts(), strategy.Scripts()), compareScript)
	if strings.HasPrefix(key, redlockPrefix) {
		scripts = redsyncScripts()
	}
	for _, s := range scripts {
		if s.Name == name {
			return s.Source
		}
	}
	return ""
}

// sourceLine returns where the calling goroutine is in the source of a strategy, a batch or a wrong lock, such as
// internal/order/strategy/none.go:18; empty if it is in none. In what all strategies share, it returns the strategy's
// call instead.
func sourceLine() string {
	callers := make([]uintptr, 64) // deep enough for gorm between a strategy and its statement
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	for {
		frame, more := frames.Next()
		if at := sourceFile.FindString(frame.File); at != "" && at != sharedFile {
			return fmt.Sprintf("%s:%d", at, frame.Line)
		}
		if !more {
			return ""
		}
	}
}

// lineKey is the context's key of the line that began a transaction.
type lineKey struct{}

const sharedFile = "internal/order/strategy/shop.go"

// sourceFile matches from the module's folder on: what is before it depends on where and how the program was built.
var sourceFile = regexp.MustCompile(`internal/(order/(strategy|batch)/\w+|lab/(wronglocks|late_payment|get_lock))\.go$`)
