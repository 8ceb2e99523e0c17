// Package process runs servers as child processes, and tells what the operating
// system knows of their memory and processor time. The load is not in their
// heap, and theirs is not in the load's.
package process
