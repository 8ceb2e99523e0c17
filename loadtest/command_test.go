package main

import (
	"io"
	"testing"
)

// "Passwords are left out."
func TestFlags_command(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "go run ./loadtest --strategies none,mutex,redis --buyers 1000 --stock 100 --think 2ms --instances 3"},
		{
			[]string{"--mysql", "shop:secret@tcp(db:3306)/shop", "--redis", "redis://:secret@cache:6379/0", "--instances", "1"},
			"go run ./loadtest --strategies none,mutex,redis --buyers 1000 --stock 100 --think 2ms --instances 1 --mysql DSN --redis ADDR",
		},
		{
			[]string{"--redlock", "a:1,b:1,c:1", "--zookeeper", "z:2181", "--timeout", "90s"},
			"go run ./loadtest --strategies none,mutex,redis --buyers 1000 --stock 100 --think 2ms --instances 3 --redlock ADDR,... --zookeeper ADDR --timeout 1m30s",
		},
		{
			[]string{"--servers", "docker"},
			"go run ./loadtest --strategies none,mutex,redis --buyers 1000 --stock 100 --think 2ms --instances 3 --servers docker",
		},
		{
			[]string{"--target", "http://me:secret@shop", "--strategies", "all", "--think", "0s"},
			"go run ./loadtest --strategies all --buyers 1000 --stock 100 --think 0s --target http://me:xxxxx@shop",
		},
		{
			[]string{"--rate", "50.5", "--duration", "10s", "--requests", "100", "--skus", "5", "--skew", "1.1", "--lines", "2", "--cancel", "0.1", "--retry", "0.2"},
			"go run ./loadtest --strategies none,mutex,redis --buyers 1000 --stock 100 --think 2ms --rate 50.5 --duration 10s --requests 100 --skus 5 --skew 1.1 --lines 2 --cancel 0.1 --retry 0.2 --instances 3",
		},
	} {
		f, err := parse(tt.args, io.Discard, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.command(); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}
