package servers

import (
	"context"
	"fmt"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
)

// stopLimit is how long Docker may take to remove a container.
const stopLimit = 30 * time.Second

// Server is one of them, alone.
type Server struct {
	Addr  string // host:port
	Image string

	container testcontainers.Container
}

// StartRedis starts one and returns when it answers, or nothing is left of it.
func StartRedis(ctx context.Context) (*Server, error) { return startOne(ctx, redisKind()) }

// StartMySQL is StartRedis of a MySQL.
func StartMySQL(ctx context.Context) (*Server, error) { return startOne(ctx, mysqlKind()) }

// StartMariaDB is StartRedis of a MariaDB.
func StartMariaDB(ctx context.Context) (*Server, error) { return startOne(ctx, mariadbKind()) }

func startOne(ctx context.Context, k kind) (*Server, error) {
	log.SetDefault(silent{})
	if err := findDocker(ctx); err != nil {
		return nil, fmt.Errorf("no Docker: %w", err)
	}
	r, err := start(ctx, k)
	s := &Server{Addr: r.addr, Image: k.imageName(), container: r.container}
	if err != nil {
		if r.container != nil {
			_ = s.Close() //nolint:contextcheck // also when ctx has ended
		}
		return nil, err
	}
	return s, nil
}

// DSN is where a MySQL or MariaDB has the schema for a shop.
func (s *Server) DSN() string { return dsn(s.Addr) }

// Close removes it.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	return testcontainers.TerminateContainer(s.container, testcontainers.StopContext(ctx), testcontainers.StopTimeout(0))
}
