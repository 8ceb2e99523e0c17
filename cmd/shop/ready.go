package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"example.com/shop/internal/app"
)

type readyCommand struct {
	URL string `name:"url" default:"http://127.0.0.1:8080" help:"Address of the shop." env:"SHOP_URL"`
}

func (readyCommand) Help() string {
	return `This command serves as the health check of a container that has no curl.

Example:
  shop ready --url http://127.0.0.1:8080`
}

// Run asks /readyz.
func (r *readyCommand) Run(ctx context.Context) error {
	base, err := url.Parse(r.URL)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return app.UsageError{Err: fmt.Errorf("--url %q: want a URL such as http://127.0.0.1:8080", r.URL)}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("readyz").String(), nil)
	if err != nil {
		return app.UsageError{Err: err}
	}
	// The client uses no proxy, because the check is of this instance.
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	answer, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("not ready: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		reason, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
		return fmt.Errorf("not ready: status %d: %s", answer.StatusCode, reason)
	}
	var ready struct{ Without []string }
	if err := json.NewDecoder(answer.Body).Decode(&ready); err != nil {
		return fmt.Errorf("not ready: %w", err)
	}
	said := "ready"
	if ready.Without != nil {
		said += ", without " + strings.Join(ready.Without, " and ")
	}
	fmt.Println(said)
	return nil
}
