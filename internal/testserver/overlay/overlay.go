// Package overlay changes source files for one build: go build -overlay reads changed copies, not the sources.
package overlay

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Overlay is the text of each changed source file, by its absolute name. A file without text is left out of the build.
type Overlay map[string]string

// Edit replaces from by to in a source file with an absolute name. After the earlier edits, the file must contain from
// exactly once. Otherwise, as when the code was renamed or moved, the error quotes from.
func (o Overlay) Edit(file, from, to string) error {
	text, again := o[file]
	if !again {
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text = string(source)
	}
	if n := strings.Count(text, from); n != 1 {
		return fmt.Errorf("%s has this %d times, want once:\n%s", file, n, from)
	}
	o[file] = strings.Replace(text, from, to, 1)
	return nil
}

// Write writes the changed copies and the list of them into a folder. It returns the list's name, for
// go build -overlay.
func (o Overlay) Write(dir string) (list string, err error) {
	replace := make(map[string]string)
	for file, text := range o {
		if replace[file] = ""; text == "" {
			continue
		}
		replace[file] = filepath.Join(dir, fmt.Sprint(len(replace), filepath.Ext(file)))
		if err := os.WriteFile(replace[file], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list = filepath.Join(dir, "overlay.json")
	return list, os.WriteFile(list, text, 0o600)
}
