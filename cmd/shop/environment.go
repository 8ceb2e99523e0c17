package main

import (
	"fmt"

	"github.com/alecthomas/kong"
)

// variableTag names the environment variable of a flag. Kong's own tag reads the
// process's environment; this one reads what run was given.
const variableTag = "variable"

// environment gives flags that were not typed the values of their variables. An
// empty variable counts as absent, as compose files leave them.
func environment(getenv func(string) string) kong.Resolver {
	return kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		name := flag.Tag.Get(variableTag)
		if name == "" {
			return nil, nil
		}
		if value := getenv(name); value != "" {
			return value, nil
		}
		return nil, nil
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
