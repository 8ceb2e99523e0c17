package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/pressly/goose/v3"
)

// largestStatement is more bytes than any statement of the shop has: a batch of orders with the longest names and keys.
const largestStatement = 1 << 20

// ask returns an error if the server does not answer, or cannot keep what the shop promises. MySQL has the collation
// utf8mb4_0900_bin from 8.0.17 on, MariaDB has SKIP LOCKED from 10.6 on.
func (s *Store) ask(ctx context.Context) error {
	if s.sqlite {
		return s.pool.PingContext(ctx)
	}
	var version string
	var packet int
	if err := s.pool.QueryRowContext(ctx, "SELECT VERSION(), @@max_allowed_packet").Scan(&version, &packet); err != nil {
		return err
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
	_, _ = fmt.Sscanf(version, "%d.%d.%d", &is[0], &is[1], &is[2]) // what cannot be read is 0
	if slices.Compare(is, least) < 0 {
		return fmt.Errorf("the server's version is %s: want MySQL from 8.0.17 on, or MariaDB from 10.6 on", version)
	}
	return nil
}

// column is a column as the migrations make it.
type column struct{ table, name, kind string }

// definition finds tables, columns and primary keys in the text of a migration.
var definition = regexp.MustCompile(`(?:CREATE TABLE IF NOT EXISTS|ALTER TABLE) (\w+)` +
	`|(\w+)\s+((?:VAR)?CHAR\(\d+\)|BIGINT|INT|DATETIME\(6\))\s+((?:NOT )?NULL)( PRIMARY KEY)?|PRIMARY KEY \(([\w, ]+)\)`)

// columns returns the columns that the migrations make.
func (s *Store) columns() (columns []column, err error) {
	folder := "mysql"
	if s.sqlite {
		folder = "sqlite"
	}
	files, err := fs.Glob(migrations, "migrations/"+folder+"/*.sql")
	if err != nil {
		return nil, err
	}
	table := ""
	for _, file := range files {
		text, err := migrations.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, m := range definition.FindAllStringSubmatch(string(text), -1) {
			switch {
			case m[1] != "":
				table = m[1]
			case m[2] != "":
				columns = append(columns, column{table, m[2], m[3] + " " + m[4] + m[5]})
			default:
				for i, c := range columns {
					if c.table == table && slices.Contains(strings.Split(m[6], ", "), c.name) {
						columns[i].kind += " PRIMARY KEY"
					}
				}
			}
		}
	}
	return columns, nil
}

// found is a column that the database has.
type found struct {
	kind     string
	engine   string // of its table, unless it is InnoDB
	compared string // the collation, unless it compares byte by byte
	bytes    string // the collation of this server that does
	optional bool   // an INSERT may leave it out
}

// tables returns the columns that the database has, by table and name.
func (s *Store) tables(ctx context.Context) (map[string]map[string]found, error) {
	query := `SELECT c.table_name, c.column_name,
			CONCAT(REPLACE(REPLACE(UPPER(c.column_type), 'BIGINT(20)', 'BIGINT'), 'INT(11)', 'INT'),
				IF(c.is_nullable = 'YES', ' NULL', ' NOT NULL'), IF(c.column_key = 'PRI', ' PRIMARY KEY', '')),
			COALESCE(NULLIF(t.engine, 'InnoDB'), IF(t.engine IS NULL, t.table_type, '')),
			IF(c.collation_name IN ('utf8mb4_0900_bin', 'utf8mb4_nopad_bin'), '', COALESCE(c.collation_name, '')),
			IF(VERSION() LIKE '%MariaDB%', 'utf8mb4_nopad_bin', 'utf8mb4_0900_bin'),
			c.is_nullable = 'YES' OR c.column_default IS NOT NULL OR c.extra <> ''
		FROM information_schema.columns AS c
		JOIN information_schema.tables AS t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
		WHERE c.table_schema = DATABASE()`
	if s.sqlite {
		query = `SELECT m.name, p.name, UPPER(p.type) || IIF(p."notnull", ' NOT NULL', ' NULL') || IIF(p.pk, ' PRIMARY KEY', ''),
				'', '', '', NOT p."notnull" OR p.dflt_value IS NOT NULL
			FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS p WHERE m.type = 'table'`
	}
	rows, err := s.pool.QueryContext(ctx, query)
	if err != nil {
		return nil, explain(ctx, "read the schema", err)
	}
	defer rows.Close() // its error is that of rows.Err
	tables := map[string]map[string]found{}
	for rows.Next() {
		var table, name string
		var f found
		if err := rows.Scan(&table, &name, &f.kind, &f.engine, &f.compared, &f.bytes, &f.optional); err != nil {
			return nil, explain(ctx, "read the schema", err)
		}
		if tables[table] == nil {
			tables[table] = map[string]found{}
		}
		tables[table][name] = f
	}
	return tables, explain(ctx, "read the schema", rows.Err())
}

// refuseForeign refuses a database that has a table of the shop's, but was never migrated.
func (s *Store) refuseForeign(ctx context.Context) error {
	tables, err := s.tables(ctx)
	if err != nil || tables[goose.DefaultTablename] != nil {
		return err
	}
	wanted, err := s.columns()
	if err != nil {
		return err
	}
	for _, c := range wanted {
		if tables[c.table] != nil {
			return fmt.Errorf("%s: its table %s is not the shop's, which would have a table %s beside it: give the shop a database of its own",
				s.name, c.table, goose.DefaultTablename)
		}
	}
	return nil
}

// CheckSchema compares the columns of an up-to-date database with those that the migrations make, and returns an error
// for each table that differs. Further indexes, and columns that an INSERT may leave out, do no harm.
func (s *Store) CheckSchema(ctx context.Context) error {
	tables, err := s.tables(ctx)
	if err != nil {
		return err
	}
	wanted, err := s.columns()
	if err != nil {
		return err
	}
	var errs []error
	said := "" // a table
	for _, c := range wanted {
		what := differs(c, tables[c.table])
		delete(tables[c.table], c.name)
		if what != "" && c.table != said {
			said = c.table
			errs = append(errs, fmt.Errorf("%s: table %s is not as the shop makes it: %s", s.name, c.table, what))
		}
	}
	for _, c := range wanted {
		for name, rest := range tables[c.table] {
			if !rest.optional {
				errs = append(errs, fmt.Errorf("%s: table %s is not as the shop makes it: column %s needs a value, which the shop does not know", s.name, c.table, name))
			}
			delete(tables[c.table], name)
		}
	}
	return errors.Join(errs...)
}

// differs says in what a table differs from a column that the migrations make; nothing if it does not.
func differs(c column, table map[string]found) string {
	is, exists := table[c.name]
	switch {
	case table == nil:
		return "it is missing, or the user has no right on it"
	case !exists:
		return "it has no column " + c.name
	case is.engine != "":
		return "it is " + is.engine + ", want the engine InnoDB"
	case is.kind != c.kind:
		return "column " + c.name + " is " + is.kind + ", want " + c.kind
	case is.compared != "":
		return fmt.Sprintf("column %s compares text by %s, want byte by byte: ALTER TABLE %s CONVERT TO CHARACTER SET utf8mb4 COLLATE %s, then run the audit",
			c.name, is.compared, c.table, is.bytes)
	}
	return ""
}
