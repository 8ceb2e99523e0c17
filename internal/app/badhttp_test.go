package app_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
)

const (
	host  = "Host: shop\r\n"
	order = "POST /v1/orders HTTP/1.1\r\n" + host + "Content-Type: application/json\r\nIdempotency-Key: key-1\r\n"
)

// A request that no HTTP library would send is refused like any bad request: with a 4xx, and without a change. The
// answer is a problem, unless the request is not HTTP.
func TestServer_badHTTP(t *testing.T) {
	shop := start(t, embedded(t, 5))
	buyIt := order + as(t, "ann") + "\r\n"
	kilobyte := "400\r\n" + strings.Repeat(" ", 1024) + "\r\n"
	for name, c := range map[string]struct {
		request string
		status  int
		slug    string
	}{
		"not HTTP":  {"buy one mug please\r\n\r\n", 400, ""},
		"TLS":       {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, ""},
		"no Host":   {"GET /v1/skus HTTP/1.1\r\n\r\n", 400, ""},
		"long path": {"GET /v1/skus/" + strings.Repeat("m", 100_000) + " HTTP/1.1\r\n" + host + "\r\n", 431, ""},

		"length of 9 exabytes":    {buyIt + "Content-Length: 9223372036854775807\r\n\r\n" + strings.Repeat(" ", 70_000), 413, "too-large"},
		"shorter than its length": {buyIt + "Content-Length: 1000\r\n\r\n{\"lines\":[", 400, "malformed"},
		"no body":                 {buyIt + "\r\n", 400, "malformed"},
		"chunked oversize":        {buyIt + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat(kilobyte, 100) + "0\r\n\r\n", 413, "too-large"},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := send(t, shop, c.request)
			if status != c.status || c.slug != "" && !strings.Contains(body, `"/problems/`+c.slug+`"`) {
				t.Errorf("got %d %.200s, want %d %s", status, body, c.status, c.slug)
			}
		})
	}
	wantAudit(t, shop, 0)
}

// "The shop keeps it for 620 seconds (`--idle-timeout`), on both listeners", longer than any load balancer keeps it.
func TestServer_idleTimeout(t *testing.T) {
	t.Parallel()
	s := embedded(t, 1)
	if s.IdleTimeout != 620*time.Second {
		t.Errorf("got %v by default, want 620 s", s.IdleTimeout)
	}
	s.IdleTimeout = time.Second
	shop := start(t, s)
	for _, address := range []string{shop.Addr(), shop.OperatorAddr()} {
		connection, err := net.Dial("tcp", address)
		testserver.Must(t, err)
		defer connection.Close()
		_, err = io.WriteString(connection, "GET /healthz HTTP/1.1\r\n"+host+"\r\n")
		testserver.Must(t, err)
		reader := bufio.NewReader(connection)
		answer, err := http.ReadResponse(reader, nil)
		testserver.Must(t, err)
		defer answer.Body.Close()
		answered := time.Now()
		testserver.Must(t, connection.SetDeadline(answered.Add(30*time.Second)))
		if _, err := io.ReadAll(reader); err != nil || answer.Close || time.Since(answered) < s.IdleTimeout/2 {
			t.Errorf("%s: got %v after %v, want an open connection for a second, and its end", address, err, time.Since(answered))
		}
	}
}

// send writes a request as it is, ends its side of the connection, and reads the answer. A server that has not read all
// may reset the connection before its answer is read: then it is asked again.
func send(t *testing.T, shop *app.Shop, request string) (status int, body string) {
	t.Helper()
	for range 5 {
		connection, err := net.Dial("tcp", shop.Addr())
		testserver.Must(t, err)
		defer connection.Close()
		testserver.Must(t, connection.SetDeadline(time.Now().Add(30*time.Second)))
		_, _ = io.WriteString(connection, request) // it fails if the shop has refused the head already
		_ = connection.(*net.TCPConn).CloseWrite()
		answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
		if errors.Is(err, syscall.ECONNRESET) {
			continue
		}
		testserver.Must(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		testserver.Must(t, err)
		return answer.StatusCode, string(text)
	}
	t.Fatal("no answer: the connection was reset each time")
	return 0, ""
}
