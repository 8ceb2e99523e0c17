package orderhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	maxDepth  = 8  // of objects and arrays in each other
	maxFields = 32 // of one object: more than any has, and few enough to compare each with each
)

// level is an object or an array that the walk is in.
type level struct {
	object bool
	name   bool // the next string is a name
	names  []string
}

// checkStrict refuses what encoding/json lets pass: repeated and oddly spelled
// fields, null, and deep nesting. It leaves syntax to encoding/json, which makes
// its own walk a look at brackets and names.
func checkStrict(body []byte) error {
	if !json.Valid(body) {
		return json.Unmarshal(body, new(json.RawMessage)) // says why
	}
	if body = bytes.TrimLeft(body, " \t\r\n"); body[0] != '{' {
		return errors.New("want one JSON object")
	}
	open := make([]level, 0, maxDepth)
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '{', '[':
			if len(open) == maxDepth {
				return errors.New("nested too deeply")
			}
			object := body[i] == '{'
			open = append(open, level{object: object, name: object})
		case '}', ']':
			open = open[:len(open)-1]
		case ',':
			open[len(open)-1].name = open[len(open)-1].object
		case 'n': // neither true, false nor a number has one
			return errors.New("null is not allowed; leave the field out")
		case '"':
			text := quoted(body[i:])
			if err := open[len(open)-1].read(text); err != nil {
				return err
			}
			i += len(text) - 1
		}
	}
	return nil
}

// quoted returns the string that valid JSON begins with, in its quotes.
func quoted(text []byte) []byte {
	for i := 1; ; i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return text[:i+1]
		}
	}
}

// read takes a string of this level, and checks it if it is the name of a field.
func (l *level) read(text []byte) error {
	if !l.name {
		return nil
	}
	l.name = false
	name := string(text[1 : len(text)-1])
	if strings.Contains(name, `\`) {
		if err := json.Unmarshal(text, &name); err != nil {
			return err
		}
	}
	switch {
	case !plainField(name) || len(l.names) == maxFields:
		return fmt.Errorf("unknown field %.40q", name)
	case slices.Contains(l.names, name):
		return fmt.Errorf("field %.40q comes twice", name)
	}
	l.names = append(l.names, name)
	return nil
}

// plainField keeps encoding/json from taking "SKU" or "ſku" for "sku".
func plainField(name string) bool {
	for i := range len(name) {
		if c := name[i]; (c < 'a' || c > 'z') && (c != '_' || i == 0) {
			return false
		}
	}
	return name != ""
}
