//go:build !unix

package machine

// Use is not known here.
func Use() Usage { return Usage{} }
