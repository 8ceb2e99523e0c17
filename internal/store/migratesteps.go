package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/pressly/goose/v3"
)

// steps are the migrations as MySQL and MariaDB need them. These commit each CREATE
// and ALTER by itself, and the row that says that a file is done comes last. So a
// file whose run was killed is run again, whatever has taken effect: a column or an
// index that is there counts as made. (MySQL has no IF NOT EXISTS for them.) The
// second run waits at a statement that the server has not finished for the first.
func steps() (all []*goose.Migration, err error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", name, err)
		}
		text, err := migrations.ReadFile(name)
		if err != nil {
			return nil, err
		}
		run := func(ctx context.Context, conns *sql.DB) error {
			for _, statement := range statementsOf(string(text)) {
				if _, err := conns.ExecContext(ctx, statement); err != nil && !isMade(err) {
					return fmt.Errorf("%s: %w", path.Base(name), err)
				}
			}
			return nil
		}
		all = append(all, goose.NewGoMigration(version, &goose.GoFunc{RunDB: run}, nil))
	}
	return all, nil
}

// statementsOf splits a file where a line ends with a semicolon, as goose does for
// SQLite. Lines that are comments are left out.
func statementsOf(file string) (statements []string) {
	var statement strings.Builder
	for line := range strings.Lines(file) {
		if strings.HasPrefix(line, "--") {
			continue
		}
		statement.WriteString(line)
		if strings.HasSuffix(strings.TrimSpace(line), ";") {
			statements = append(statements, strings.TrimSpace(statement.String()))
			statement.Reset()
		}
	}
	return statements
}

// isMade reports whether err says that what a statement makes is there.
func isMade(err error) bool {
	var answer *mysql.MySQLError
	return errors.As(err, &answer) &&
		(answer.Number == 1060 || // ER_DUP_FIELDNAME
			answer.Number == 1061) // ER_DUP_KEYNAME
}
