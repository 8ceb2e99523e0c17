package zklock

import (
	"strings"

	"github.com/go-zookeeper/zk"
)

// tracedConn calls Options.Trace after the commands by which a key is taken, renewed and released.
type tracedConn struct {
	*zk.Conn
	trace func(command, path, answer string)
}

func (c tracedConn) answered(command, path, answer string, err error) {
	if err != nil {
		answer = err.Error()
	}
	if c.trace != nil {
		c.trace(command, path, answer)
	}
}

func (c tracedConn) Create(path string, data []byte, flags int32, acl []zk.ACL) (string, error) {
	made, err := c.Conn.Create(path, data, flags, acl)
	c.answered("create", path, made[strings.LastIndex(made, "/")+1:], err)
	return made, err
}

func (c tracedConn) Children(path string) ([]string, *zk.Stat, error) {
	names, stat, err := c.Conn.Children(path)
	c.answered("children", path, strings.Join(names, " "), err)
	return names, stat, err
}

func (c tracedConn) ChildrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	names, stat, changed, err := c.Conn.ChildrenW(path)
	c.answered("watch", path, "OK", err)
	return names, stat, changed, err
}

func (c tracedConn) Set(path string, data []byte, version int32) (*zk.Stat, error) {
	stat, err := c.Conn.Set(path, data, version)
	c.answered("set", path, "OK", err)
	return stat, err
}

func (c tracedConn) Delete(path string, version int32) error {
	err := c.Conn.Delete(path, version)
	c.answered("delete", path, "OK", err)
	return err
}
