package ui

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"example.com/shop/loadtest/report"
)

func TestCheckAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"127.0.0.1:8090": "127.0.0.1:8090",
		":8090":          "127.0.0.1:8090", // this machine alone
		"0.0.0.0:0":      "0.0.0.0:0",
		"[::1]:80":       "[::1]:80",
	} {
		if got, err := listenOn(address); got != want || err != nil {
			t.Errorf("%s: got %s, %v, want %s", address, got, err, want)
		}
	}
	for _, address := range []string{"", "8090", "127.0.0.1", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:65536", "127.0.0.1:-1", "::1:80"} {
		if err := CheckAddress(address); !errors.Is(err, ErrAddress) {
			t.Errorf("%q: got %v, want an ErrAddress", address, err)
		}
	}
}

// "until ctx ends, which also ends a run"; "When it returns, nothing of it runs any
// more", which TestMain looks for. An event is the whole state.
func TestServe(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	lab := fakeLab{race: func(ctx context.Context, _ string, _ Watcher) (report.Strategy, error) {
		close(begun)
		<-ctx.Done()
		return report.Strategy{}, context.Cause(ctx)
	}}
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	told, served := make(chan string, 9), make(chan error, 1)
	go func() { served <- Serve(ctx, "127.0.0.1:0", lab, func(line string) { told <- line }) }()
	line := <-told
	url := strings.TrimSuffix(strings.TrimPrefix(line, "The race lab is at "), "/ until Ctrl-C.")

	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	answer, err := client.Get(url + "/events")
	if err != nil {
		t.Fatalf("%v; told: %s", err, line)
	}
	defer answer.Body.Close()
	if got := answer.Header.Get("Content-Security-Policy"); got != policy {
		t.Errorf("policy: got %q, want %q", got, policy)
	}
	accepted, err := client.Post(url+"/run", "application/json", strings.NewReader(`{"strategies":["none"],"buyers":3}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = accepted.Body.Close()
	<-begun
	var last state
	for lines := bufio.NewScanner(answer.Body); last.Phase != running && lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if err := json.Unmarshal([]byte(data), &last); err != nil {
				t.Fatal(err)
			}
		}
	}
	if last.Run != 1 || last.Buyers != 3 || len(last.Races) != 1 {
		t.Errorf("event: got %+v, want the first run", last)
	}
	cancel()
	if err := <-served; err != nil {
		t.Errorf("got %v, want nil", err)
	}
}

func TestServe_address_in_use(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if err := Serve(t.Context(), taken.Addr().String(), fakeLab{}, func(string) {}); err == nil || !strings.Contains(err.Error(), "listen") {
		t.Errorf("got %v, want that it cannot listen", err)
	}
}
