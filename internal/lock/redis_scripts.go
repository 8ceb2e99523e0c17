package lock

// ScriptName returns what the script with this hash is for, as EVALSHA and a
// server's slow log have it: acquire, renew or release; empty if it is none of this
// package's.
func ScriptName(hash string) string {
	switch hash {
	case acquireScript.Hash():
		return "acquire"
	case renewScript.Hash():
		return "renew"
	case releaseScript.Hash():
		return "release"
	}
	return ""
}
