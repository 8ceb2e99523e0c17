package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/pressly/goose/v3"
)

// largestStatement is an upper limit, in bytes, for the shop's statements: the largest is a batch of orders with the
// longest names and keys.
const largestStatement = 1 << 20

// ask returns an error if the server does not answer, or cannot keep what the shop promises. MySQL has the collation
// utf8mb4_0900_bin from 8.0.17 on, MariaDB has SKIP LOCKED from 10.6 on.
func (s *Store) ask(ctx context.Context) error {
	if s.sqlite {
		return s.pool.PingContext(ctx)
	}
	var version string
	var packet int
	var rollsBack bool
	query := "SELECT VERSION(), @@max_allowed_packet, @@innodb_rollback_on_timeout"
	if err := s.pool.QueryRowContext(ctx, query).Scan(&version, &packet, &rollsBack); err != nil {
		return err
	}
	if rollsBack {
		return errors.New("innodb_rollback_on_timeout of the server is ON: want OFF, since a transaction goes on after a row that others have locked")
	}
	if packet < largestStatement {
		return fmt.Errorf("max_allowed_packet of the server is %d: want at least %d, for a batch of orders", packet, largestStatement)
	}
	return supported(version)
}

func supported(version string) error {
	least := []int{8, 0, 17}
	if strings.Contains(version, "MariaDB") {
		least = []int{10, 6, 0}
	}
	is := make([]int, 3)
	_, _ = fmt.Sscanf(version, "%d.%d.%d", &is[0], &is[1], &is[2]) // a number that cannot be read stays 0
	if slices.Compare(is, least) < 0 {
		return fmt.Errorf("the server's version is %s: want MySQL from 8.0.17 on, or MariaDB from 10.6 on", version)
	}
	return nil
}

// column is a column as the migrations make it, or as the database has it.
type column struct {
	Table    string `gorm:"column:of_table"`
	Name     string
	Kind     string // such as VARCHAR(64) NOT NULL PRIMARY KEY; followed by what is wrong with it
	Optional bool   // an INSERT may leave it out
}

func (c column) is(other column) bool { return c.Table == other.Table && c.Name == other.Name }

// definition finds tables, columns and primary keys in the text of a migration.
var definition = regexp.MustCompile(`(?:CREATE TABLE IF NOT EXISTS|ALTER TABLE) (\w+)` +
	`|(\w+)\s+((?:VAR)?CHAR\(\d+\)|BIGINT|INT|DATETIME\(6\))\s+((?:NOT )?NULL)( PRIMARY KEY)?|PRIMARY KEY \(([\w, ]+)\)`)

// wanted returns the columns that the migrations up to a version make; those for SQLite make the same.
func wanted(version int64) (columns []column) {
	files, _ := fs.Glob(migrations, "migrations/mysql/*.sql") // embedded: no error
	for _, file := range files[:min(version, int64(len(files)))] {
		text, _ := migrations.ReadFile(file)
		table := ""
		for _, m := range definition.FindAllStringSubmatch(string(text), -1) {
			switch {
			case m[1] != "":
				table = m[1]
			case m[2] != "":
				columns = append(columns, column{Table: table, Name: m[2], Kind: m[3] + " " + m[4] + m[5]})
			default:
				for i, c := range columns {
					if c.Table == table && slices.Contains(strings.Split(m[6], ", "), c.Name) {
						columns[i].Kind += " PRIMARY KEY"
					}
				}
			}
		}
	}
	return columns
}

// found returns the columns that the database has and the user may see.
func (s *Store) found(ctx context.Context) (columns []column, err error) {
	query := `SELECT c.table_name AS of_table, c.column_name AS name, CONCAT(
			REPLACE(REPLACE(UPPER(c.column_type), 'BIGINT(20)', 'BIGINT'), 'INT(11)', 'INT'),
			IF(c.is_nullable = 'YES', ' NULL', ' NOT NULL'), IF(c.column_key = 'PRI', ' PRIMARY KEY', ''),
			IF(t.engine = 'InnoDB', '', CONCAT(', not in InnoDB but ', COALESCE(t.engine, t.table_type))),
			IF(COALESCE(c.collation_name, 'utf8mb4_0900_bin') IN ('utf8mb4_0900_bin', 'utf8mb4_nopad_bin'), '', CONCAT(
				', compared not byte by byte but by ', c.collation_name, ': ALTER TABLE ', c.table_name, ' CONVERT TO CHARACTER SET utf8mb4 COLLATE ',
				IF(VERSION() LIKE '%MariaDB%', 'utf8mb4_nopad_bin', 'utf8mb4_0900_bin'), ', then run the audit'))) AS kind,
			c.is_nullable = 'YES' OR c.column_default IS NOT NULL OR c.extra <> '' AS optional
		FROM information_schema.columns AS c
		JOIN information_schema.tables AS t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
		WHERE c.table_schema = DATABASE()`
	if s.sqlite {
		query = `SELECT m.name AS of_table, p.name, NOT p."notnull" OR p.dflt_value IS NOT NULL AS optional,
				UPPER(p.type) || IIF(p."notnull", ' NOT NULL', ' NULL') || IIF(p.pk, ' PRIMARY KEY', '') AS kind
			FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS p WHERE m.type = 'table'`
	}
	err = s.db.WithContext(ctx).Raw(query).Scan(&columns).Error
	return columns, explain(ctx, "read the schema", err)
}

// refuseForeign refuses a database that has a table of the shop's, but was never migrated.
func (s *Store) refuseForeign(ctx context.Context) error {
	found, err := s.found(ctx)
	if err != nil || slices.ContainsFunc(found, func(f column) bool { return f.Table == goose.DefaultTablename }) {
		return err
	}
	for _, c := range wanted(latest) {
		if slices.ContainsFunc(found, func(f column) bool { return f.Table == c.Table }) {
			return fmt.Errorf("its table %s is not the shop's, which would have a table %s beside it: give the shop a database of its own",
				c.Table, goose.DefaultTablename)
		}
	}
	return nil
}

// CheckSchema compares the columns of an up-to-date database with those that the migrations make, and returns an error
// that names the first table that differs. Further indexes, and columns that an INSERT may leave out, do no harm.
func (s *Store) CheckSchema(ctx context.Context) error { return s.checkSchema(ctx, latest) }

const latest = math.MaxInt64 // version

func (s *Store) checkSchema(ctx context.Context, version int64) error {
	found, err := s.found(ctx)
	if err != nil {
		return err
	}
	wanted := wanted(version)
	for _, c := range wanted {
		got := "none that the user may see"
		if i := slices.IndexFunc(found, c.is); i >= 0 {
			got = found[i].Kind
		}
		if got != c.Kind {
			return fmt.Errorf("table %s is not as the shop makes it: column %s: want %s, got %s", c.Table, c.Name, c.Kind, got)
		}
	}
	for _, f := range found {
		ours := slices.ContainsFunc(wanted, func(c column) bool { return c.Table == f.Table })
		if ours && !f.Optional && !slices.ContainsFunc(wanted, f.is) {
			return fmt.Errorf("table %s is not as the shop makes it: its column %s needs a value, which the shop does not have", f.Table, f.Name)
		}
	}
	return nil
}
