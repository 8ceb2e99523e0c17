# Daily commands. `make` alone lists them.
.DEFAULT_GOAL := help
.PHONY: help run lab demo test race integration lint bench bench-shop fuzz

help: ## list these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | column -t -s "$$(printf '\t')"

run: ## start a shop that needs no server, http://127.0.0.1:8080
	go run ./cmd/shop serve

lab: ## start a teaching shop, in which each request chooses how it is sold, http://127.0.0.1:8080
	go run ./cmd/lab

demo: ## show the oversell without a lock, and the correct result with one
	go run ./loadtest

test: ## all tests; those that need Docker skip without it
	go test ./...

race: ## all tests under the race detector
	go test -race ./...

integration: ## all tests under the race detector; one that lacks its server fails
	CI=true go test -race ./...

lint: ## formatting, vet, and the import rules of the layout; needs golangci-lint v2
	golangci-lint run

bench: ## the lock alone: one goroutine, many keys, one hot key
	go test -run '^$$' -bench . -benchmem ./internal/lock

bench-shop: ## orders per second over HTTP by each strategy, three shops; FLAGS='--database mysql', '--help'
	go run ./loadtest bench $(FLAGS)

fuzz: ## each fuzz target for a minute: order body, idempotency key, cursor, token and names of locks
	.ci/fuzz 1m
