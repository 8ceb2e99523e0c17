// Package server starts a Redis that forgets everything when it is stopped: a
// redis-server process where the program is on PATH, or else a container.
package server
