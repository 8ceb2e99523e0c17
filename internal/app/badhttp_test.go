package app_test

import (
	"bufio"
	"errors"
	"fmt"
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

// chunks is a body of n chunks of a kilobyte each.
func chunks(n int) string {
	return strings.Repeat("400\r\n"+strings.Repeat(" ", 1024)+"\r\n", n) + "0\r\n\r\n"
}

// A request that no HTTP library would send is refused like any bad request: with a 4xx, and without a change. If the
// case has a slug, the answer is a problem. Otherwise the request is not HTTP, and the server refuses it in plain text.
func TestServer_badHTTP(t *testing.T) {
	shop := start(t, embedded(t, 5))
	buyIt := order + as(t, "ann") + "\r\n"
	for name, c := range map[string]struct {
		request string
		status  int
		slug    string
	}{
		"not HTTP":        {"buy one mug please\r\n\r\n", 400, ""},
		"TLS":             {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, ""},
		"no version":      {"GET /v1/skus\r\n\r\n", 400, ""},
		"no Host":         {"GET /v1/skus HTTP/1.1\r\n\r\n", 400, ""},
		"broken escape":   {"GET /v1/skus/%zz HTTP/1.1\r\n" + host + "\r\n", 400, ""},
		"long path":       {"GET /v1/skus/" + strings.Repeat("m", 100_000) + " HTTP/1.1\r\n" + host + "\r\n", 431, ""},
		"NUL in a header": {"GET /v1/skus HTTP/1.1\r\n" + host + "Shop-Buyer: a\x00b\r\n\r\n", 400, ""},
		"negative length": {buyIt + "Content-Length: -1\r\n\r\n", 400, ""},

		"length of 9 exabytes":    {buyIt + "Content-Length: 9223372036854775807\r\n\r\n" + strings.Repeat(" ", 70_000), 413, "too-large"},
		"shorter than its length": {buyIt + "Content-Length: 1000\r\n\r\n{\"lines\":[", 400, "malformed"},
		"no body":                 {buyIt + "\r\n", 400, "malformed"},
		"chunked oversize":        {buyIt + "Transfer-Encoding: chunked\r\n\r\n" + chunks(100), 413, "too-large"},
		"chunk of no length":      {buyIt + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n0\r\n\r\n", 400, "malformed"},
		"chunks that end early":   {buyIt + "Transfer-Encoding: chunked\r\n\r\n400\r\n{}", 400, "malformed"},
		"chunked, with a length":  {buyIt + "Transfer-Encoding: chunked\r\nContent-Length: 99\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 422, "invalid-order"},
		"method in small letters": {"get /v1/skus HTTP/1.1\r\n" + host + "\r\n", 405, "method-not-allowed"},
		"two slashes":             {"GET //v1//skus HTTP/1.1\r\n" + host + "\r\n", 404, "not-found"},
		"fragment":                {"GET /v1/skus#mug HTTP/1.1\r\n" + host + "\r\n", 404, "not-found"},
		"HTTP/2 unasked":          {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 404, "not-found"},

		// These two are HTTP's own: RFC 9112, 6.1 and RFC 9110, 15.6.6.
		"unknown transfer coding": {buyIt + "Transfer-Encoding: gzip, chunked\r\n\r\n", 501, ""},
		"HTTP/3 in words":         {"GET /v1/skus HTTP/3.0\r\n" + host + "\r\n", 505, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := send(t, shop, c.request)
			if got.status != c.status {
				t.Fatalf("got %d %.200s, want %d", got.status, got.body, c.status)
			}
			if c.slug == "" {
				if media := got.header.Get("Content-Type"); media != "" && !strings.HasPrefix(media, "text/plain") {
					t.Errorf("got %s, want plain text", media)
				}
				return
			}
			if !strings.Contains(string(got.body), `"/problems/`+c.slug+`"`) {
				t.Errorf("got %s, want problem %s", got.body, c.slug)
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

// reply is an answer to what may be no request.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// send writes a request as it is, ends its side of the connection, and reads the answer. A server that has not read all
// may reset the connection before its answer is read: then it is asked again.
func send(t *testing.T, shop *app.Shop, request string) reply {
	t.Helper()
	for range 5 {
		got, err := sendOnce(shop, request)
		if err == nil {
			return got
		}
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Fatal(err)
		}
	}
	t.Fatal("no answer: the connection was reset each time")
	return reply{}
}

func sendOnce(shop *app.Shop, request string) (reply, error) {
	connection, err := net.Dial("tcp", shop.Addr())
	if err != nil {
		return reply{}, err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return reply{}, err
	}
	_, _ = io.WriteString(connection, request) // answered early, it may fail: the answer tells
	_ = connection.(*net.TCPConn).CloseWrite()
	answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		return reply{}, fmt.Errorf("read answer: %w", err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return reply{answer.StatusCode, answer.Header, body}, err
}
