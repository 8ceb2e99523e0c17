package main

import (
	"fmt"
	"slices"

	"github.com/alecthomas/kong"
)

// variableTag names the environment variable of a flag. Kong's own tag reads the
// process's environment; this one reads what run was given.
const variableTag = "variable"

// rivalTag names a flag that, once typed, makes the variable of this one count
// as absent.
const rivalTag = "rival"

// environment gives flags that were not typed the values of their variables. An
// empty variable counts as absent, as compose files leave them.
func environment(getenv func(string) string) kong.Resolver {
	return kong.ResolverFunc(func(c *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		name := flag.Tag.Get(variableTag)
		if name == "" || typed(c, flag.Tag.Get(rivalTag)) {
			return nil, nil
		}
		if value := getenv(name); value != "" {
			return value, nil
		}
		return nil, nil
	})
}

// typed reports whether a flag stands on the command line.
func typed(c *kong.Context, name string) bool {
	return slices.ContainsFunc(c.Path, func(p *kong.Path) bool {
		return p.Flag != nil && p.Flag.Name == name && !p.Resolved
	})
}

// nameVariable adds the variable to a flag's help.
func nameVariable(value *kong.Value) string {
	name := value.Tag.Get(variableTag)
	if name == "" {
		return value.Help
	}
	return fmt.Sprintf("%s [$%s]", value.Help, name)
}
