package store_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"example.com/shop/internal/lock/testserver"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

// servers is the table of MySQL and its kin.
func servers() map[string]func(testing.TB) (dsn string) {
	return map[string]func(testing.TB) string{"MySQL": testserver.MySQL, "MariaDB": testserver.MariaDB}
}

func eachServer(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Helper()
	for name, schema := range servers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, schema(t))
		})
	}
}

// at is a proxy that calls before, if there is one, at the statements with a word
// in them, and then does this to them. The others pass.
func at(word string, how storetest.Fate, before func()) *storetest.Proxy {
	return &storetest.Proxy{Judge: func(statement string) storetest.Fate {
		if !strings.Contains(statement, word) {
			return storetest.Pass
		}
		if before != nil {
			before()
		}
		return how
	}}
}

func open(t *testing.T, dsn string) *gorm.DB {
	t.Helper()
	db, err := store.MySQL(t.Context(), dsn, store.Pool{})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = store.Close(db) })
	return db
}
