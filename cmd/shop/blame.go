package main

import (
	"strings"

	"github.com/alecthomas/kong"
)

// variableError is a mistake that stands in the environment: what is wrong names the
// flag, which nobody typed.
type variableError struct {
	cause error
	text  string
}

func (e *variableError) Error() string { return e.text }
func (e *variableError) Unwrap() error { return e.cause }

// blame adds the variable to each line about a flag that has its value from one.
func blame(err error, c *kong.Context, getenv func(string) string) error {
	if c == nil {
		return err
	}
	lines := strings.Split(err.Error(), "\n")
	for _, flag := range c.Flags() {
		variable := flag.Tag.Get(variableTag)
		if variable == "" || getenv(variable) == "" || typed(c, flag.Name) {
			continue
		}
		for i, line := range lines {
			name, _, _ := strings.Cut(strings.TrimPrefix(line, "--"), ":")
			name, _, _ = strings.Cut(name, "=") // as kong quotes a flag with its value
			if name == flag.Name && !strings.Contains(line, variable) {
				lines[i] = line + " ($" + variable + ")"
			}
		}
	}
	return &variableError{cause: err, text: strings.Join(lines, "\n")}
}
