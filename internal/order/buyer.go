package order

import "fmt"

const maxBuyer = 64 // characters

// CheckBuyer returns ErrBuyer, wrapped, for what cannot be a buyer's name: it
// has 1 to 64 letters, digits, '.', '_', '@' and '-', and begins with a letter or
// a digit. It is the rule that Request.Validate applies, for whoever learns of a
// buyer before there is a request.
func CheckBuyer(name string) error {
	if !validBuyer(name) {
		return fmt.Errorf("%w %.80q: want 1 to 64 letters, digits, '.', '_', '@', '-', the first a letter or a digit", ErrBuyer, name)
	}
	return nil
}

// validBuyer is the rule, letter by letter: as a regular expression it was seen in
// profiles.
func validBuyer(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '@' || c == '-'):
		default:
			return false
		}
	}
	return name != "" && len(name) <= maxBuyer
}
