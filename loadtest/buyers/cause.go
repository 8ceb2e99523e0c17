package buyers

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"syscall"
)

// cause says why no answer came, without the port numbers and addresses that
// make each such error a different text.
func cause(err error) string {
	var (
		asked   *url.Error
		network *net.OpError
	)
	switch {
	case errors.Is(err, context.Canceled):
		return "stopped before an answer came"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &asked) && asked.Timeout():
		return "no answer in time"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return "the connection broke before the answer"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the shop's port is closed"
	case errors.As(err, &network):
		return network.Op + ": " + network.Err.Error()
	case asked != nil:
		return asked.Err.Error()
	}
	return err.Error()
}
