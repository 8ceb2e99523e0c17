package app

import (
	"errors"
	"fmt"
	"strings"
)

// minRedlock is how many servers outlast the failure of one.
const minRedlock = 3

func (s Settings) validShortTTL() error {
	if s.LabShortTTL != 0 && !s.Lab {
		return errors.New("short TTL: is for teaching mode; add --lab or leave it out")
	}
	return within("short TTL", s.LabShortTTL, 0, maxLockTTL)
}

func (s Settings) validRedlock() error {
	if len(s.Redlock) == 0 {
		return nil
	}
	if !s.Lab {
		return errors.New("redlock: is for teaching mode; add --lab or leave it out")
	}
	if n := len(s.Redlock); n < minRedlock || n%2 == 0 {
		return fmt.Errorf("redlock: %d servers: want an odd number of them, %d at least; five is usual", n, minRedlock)
	}
	seen := map[string]bool{}
	for _, address := range s.Redlock {
		options, err := redisOptions(address)
		switch {
		case err != nil:
			return fmt.Errorf("redlock: %w", err)
		case options.TLSConfig != nil:
			return looksLikeProduction("redlock", true)
		case seen[options.Addr]:
			return fmt.Errorf("redlock: %s is there twice: a server has one vote", options.Addr)
		}
		seen[options.Addr] = true
	}
	return nil
}

func (s Settings) validZooKeeper() error {
	if s.ZooKeeper == "" {
		return nil
	}
	if !s.Lab {
		return errors.New("zookeeper: is for teaching mode; add --lab or leave it out")
	}
	for address := range strings.SplitSeq(s.ZooKeeper, ",") {
		if err := validListen("zookeeper", address); err != nil || strings.HasPrefix(address, ":") {
			return fmt.Errorf("zookeeper: %q: want host:port such as 127.0.0.1:2181", address)
		}
	}
	return nil
}
