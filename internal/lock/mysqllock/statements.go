package mysqllock

import (
	_ "embed"
	"strings"
)

// Schema is the statement that makes the table, named `locks`, for migrations.
//
//go:embed schema.sql
var Schema string

// statements are the SQL of one Backend; they differ by the table's name, which
// cannot be a parameter. Everything else is.
type statements struct {
	create, insert, look, lock, set, release, list, remove string
}

const (
	// A free row, where there is none.
	insertSource = `
INSERT IGNORE INTO {table} (name, owner, fence, deadline, holds)
VALUES (?, '', 0, UTC_TIMESTAMP(6), 0)`

	// How the row stands, by the clock of now in microseconds: a plain read, and the
	// same with the row locked.
	lookSource = `
SELECT owner, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), deadline),
       fence, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
  FROM {table} WHERE name = ?`

	lockSource = lookSource + ` FOR UPDATE`

	// A grant or a renewal, with the row locked.
	setSource = `
UPDATE {table}
   SET owner = ?, fence = ?, deadline = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND, holds = holds + ?
 WHERE name = ?`

	// A release needs no look before: the condition is one.
	releaseSource = `
UPDATE {table}
   SET owner = '', fence = GREATEST(fence, ?), deadline = UTC_TIMESTAMP(6)
 WHERE name = ? AND owner = ? AND deadline > UTC_TIMESTAMP(6)`

	// The next rows by name, and which of them nobody needs: none was held for so
	// many microseconds, and the clock has left the fence as far behind.
	listSource = `
SELECT name, ` + unusedSource + `
  FROM {table} WHERE name > ? ORDER BY name LIMIT ?`

	removeSource = `DELETE FROM {table} WHERE name = ? AND ` + unusedSource

	unusedSource = `(deadline < UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND
   AND fence < TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - ?)`
)

func newStatements(table string) statements {
	quoted := "`" + strings.ReplaceAll(table, ".", "`.`") + "`"
	named := func(source string) string {
		return strings.TrimSpace(strings.ReplaceAll(source, "{table}", quoted))
	}
	return statements{
		create:  strings.Replace(Schema, "`locks`", quoted, 1),
		insert:  named(insertSource),
		look:    named(lookSource),
		lock:    named(lockSource),
		set:     named(setSource),
		release: named(releaseSource),
		list:    named(listSource),
		remove:  named(removeSource),
	}
}
