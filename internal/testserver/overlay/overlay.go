// Package overlay changes source files for one build: go build -overlay reads changed copies, not the sources.
package overlay

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Overlay is the text of each changed source file, by its absolute name.
type Overlay map[string]string

var (
	fileStart = regexp.MustCompile(`(?m)^(?:diff --git .*\nindex .*\n)?--- a/.*\n\+\+\+ b/`)
	hunkStart = regexp.MustCompile(`(?m)^@@ .*\n`)
)

// Apply applies a patch, as written by git diff, to the source files below a folder. The old lines of each hunk must occur
// in their file exactly once. Line numbers do not count, so that a patch outlives changes elsewhere in the file. Text above
// the first file is ignored. After an error, the overlay is as it was.
func (o Overlay) Apply(folder, patch string) error {
	changed, parts := maps.Clone(o), fileStart.Split(patch, -1)[1:]
	if len(parts) == 0 {
		return errors.New("the patch changes no file: want the output of git diff, with its prefixes a/ and b/")
	}
	for _, part := range parts {
		hunks := hunkStart.Split(strings.TrimSuffix(part, "\n")+"\n", -1)
		file := filepath.Join(folder, strings.TrimSpace(hunks[0]))
		if len(hunks) == 1 {
			return fmt.Errorf("patch of %s: it has no hunk", file)
		}
		for _, hunk := range hunks[1:] {
			var before, after strings.Builder
			for line := range strings.Lines(hunk) {
				switch line[0] {
				case ' ':
					before.WriteString(line[1:])
					after.WriteString(line[1:])
				case '-':
					before.WriteString(line[1:])
				case '+':
					after.WriteString(line[1:])
				default:
					return fmt.Errorf("patch of %s: %q is no line of a hunk", file, line)
				}
			}
			if err := changed.replace(file, before.String(), after.String()); err != nil {
				return err
			}
		}
	}
	maps.Copy(o, changed)
	return nil
}

// replace replaces whole lines of a file, which must contain them exactly once.
func (o Overlay) replace(file, before, after string) error {
	text, again := o[file]
	if !again {
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text = string(source)
	}
	from, to := strings.Index("\n"+text, "\n"+before), strings.LastIndex("\n"+text, "\n"+before)
	if from < 0 || from != to {
		return fmt.Errorf("patch of %s: the file must contain these lines exactly once:\n%s", file, before)
	}
	o[file] = strings.Replace("\n"+text, "\n"+before, "\n"+after, 1)[1:]
	return nil
}

// Write writes the changed copies and the list of them into a folder. It returns the list's name, for
// go build -overlay.
func (o Overlay) Write(dir string) (list string, err error) {
	replace := make(map[string]string)
	for file, text := range o {
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
