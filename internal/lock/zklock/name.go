package zklock

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// escape makes any text one legal name of a node, and no two texts the same one.
// Letters, digits and some signs stay, so that names can be read; all other
// bytes, and a dot at the beginning, become % and two digits.
func escape(text string) string {
	if text == "" {
		return "%"
	}
	var name strings.Builder
	for i := range len(text) {
		c := text[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9',
			strings.IndexByte("-_:=,@", c) >= 0, c == '.' && i > 0:
			name.WriteByte(c)
		default:
			fmt.Fprintf(&name, "%%%02X", c)
		}
	}
	return name.String()
}

// digits is how many ZooKeeper writes behind the name of a sequential node.
const digits = 10

// entry is one node of a key's line: <owner>-<sequence>.
type entry struct {
	owner    string // escaped
	sequence int32
}

// parse takes a node's name apart from behind, since an owner may contain
// anything. It refuses names that no Backend makes.
func parse(name string) (entry, bool) {
	at := len(name) - digits - 1
	if at < 1 || name[at] != '-' {
		return entry{}, false
	}
	sequence, err := strconv.ParseUint(name[at+1:], 10, 31)
	if err != nil {
		return entry{}, false
	}
	return entry{owner: name[:at], sequence: int32(sequence)}, true
}

// ownedBy returns the owner's nodes among the children of a key's node. The whole
// owner is compared.
func ownedBy(children []string, owner string) (names []string) {
	owner = escape(owner)
	for _, name := range children {
		if e, legal := parse(name); legal && e.owner == owner {
			names = append(names, name)
		}
	}
	return names
}

// before returns the node that stands in line right before mine, "" if mine is
// the first. Without mine, ok is false.
func before(children []string, mine string) (next string, ok bool) {
	me, legal := parse(mine)
	if !legal || !slices.Contains(children, mine) {
		return "", false
	}
	last := int32(-1)
	for _, name := range children {
		if e, legal := parse(name); legal && e.sequence < me.sequence && e.sequence > last {
			next, last = name, e.sequence
		}
	}
	return next, true
}
