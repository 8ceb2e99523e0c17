package testserver

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"
)

// OpenRedis starts a Redis for a program that is no test. The caller closes it; where the process is killed before, the
// reaper of testcontainers does.
func OpenRedis(ctx context.Context) (*Server, error) { return open(ctx, redisKind()) }

// OpenMySQL is OpenRedis of a MySQL, whose commits are on disk when they return.
func OpenMySQL(ctx context.Context) (*Server, error) { return open(ctx, mysqlKind().durable()) }

// OpenMariaDB is OpenMySQL of a MariaDB.
func OpenMariaDB(ctx context.Context) (*Server, error) { return open(ctx, mariadbKind().durable()) }

// OpenZooKeeper is OpenRedis of a ZooKeeper.
func OpenZooKeeper(ctx context.Context) (*Server, error) { return open(ctx, zookeeperKind().durable()) }

func open(ctx context.Context, k kind) (*Server, error) {
	if err := findImage(ctx, k.imageName()); err != nil {
		return nil, fmt.Errorf("%s in a container: %w; install Docker and see that `docker info` works, or name another image in %s", k.name, err, k.variable)
	}
	s, err := start(ctx, k)
	if err != nil {
		return nil, err
	}
	s.addr = s.direct(ctx)
	return s, nil
}

// direct returns the container's own address where that can be reached, as on a Linux where Docker runs: it spares each
// byte the way through Docker's proxy. A restart may change it.
func (s *Server) direct(ctx context.Context) string {
	ip, err := s.container.ContainerIP(ctx)
	if err != nil || ip == "" {
		return s.addr
	}
	addr := net.JoinHostPort(ip, strconv.Itoa(s.kind.port))
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return s.addr
	}
	_ = conn.Close()
	return addr
}
