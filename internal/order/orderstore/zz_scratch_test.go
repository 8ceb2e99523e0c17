package orderstore

import (
	"database/sql"
	"os"
	"strconv"
	"strings"
	"fmt"
	"testing"
	"time"

	"gorm.io/gorm"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/store"
	"example.com/shop/internal/store/storetest"
)

func fill(t *testing.T, db *gorm.DB, n int) {
	ex := func(s string) {
		if err := db.Exec(s).Error; err != nil { t.Fatal(s, err) }
	}
	ex("INSERT INTO skus VALUES ('mug',1,'EUR',"+strconv.Itoa(2*n)+",0,"+strconv.Itoa(2*n)+",0,0,'2026-01-01 00:00:00.000000')")
	ex("INSERT INTO movements VALUES ('mug','0','supply',NULL,"+strconv.Itoa(2*n)+","+strconv.Itoa(2*n)+",0,0,0,'2026-01-01 00:00:00.000000')")
	if db.Dialector.Name() == "mysql" {
	}
	with := "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < "+strconv.Itoa(n)+") SELECT "
	id := "printf('01a1fbf5-8865-7260-ad04-%012d', i)"
	if db.Dialector.Name() == "mysql" { id = "concat('01a1fbf5-8865-7260-ad04-', lpad(i,12,'0'))" }
	
	run := func(tx *gorm.DB) error {
		tx = tx.Session(&gorm.Session{NewDB: true, Context: t.Context()})
		if db.Dialector.Name() == "mysql" {
			if err := tx.Exec("SET SESSION cte_max_recursion_depth = 100000000").Error; err != nil {
				if err := tx.Exec("SET SESSION max_recursive_iterations = 100000000").Error; err != nil { return err }
 tx.Error = nil
			}
		}
		for _, s := range []string{
			"INSERT INTO orders "+with+id+", 'ann', i, 'pending', 0, 'EUR', '2026-01-01 00:00:00.000000' FROM n",
			"INSERT INTO order_lines "+with+id+", 'mug', 1, 2, 0, 'EUR' FROM n",
			"INSERT INTO idempotency_keys "+with+"'ann', i, 'f', "+id+", '2026-01-01 00:00:00.000000' FROM n",
			"INSERT INTO movements "+with+"'mug', "+id+", 'reserve', "+id+", 0, -2, 2, 0, 0, '2026-01-01 00:00:00.000000' FROM n",
		} {
			if err := tx.Exec(s).Error; err != nil { return err }
		}
		return nil
	}
	if err := db.Connection(run); err != nil { t.Fatal(err) }
}

func TestScratch(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("N"))
	for _, k := range storetest.Kinds() {
		if w := os.Getenv("KIND"); w != "" && w != k.Name { continue }
		t.Run(k.Name, func(t *testing.T) {
		db := k.New(t, "").Migrated(t)
		start := time.Now()
		fill(t, db, n)
		fmt.Println(k.Name, "fill", time.Since(start))
		start = time.Now()
		accounts(db, "", func(a stock.Account) error { fmt.Println(a); return nil })
		fmt.Println("accounts", time.Since(start))
		start = time.Now()
		accounts(db, "mug", func(a stock.Account) error { return nil })
		fmt.Println("accounts of mug", time.Since(start))
		for _, c := range checks() {
			start = time.Now()
			if err := c.run(db, "", func(stock.Difference) error { return nil }); err != nil { t.Fatal(err) }
			took := time.Since(start)
			fmt.Println(took, c.detail)
			if took > time.Second && db.Dialector.Name() == "sqlite" || os.Getenv("EXPLAIN") != "" {
				ex := "EXPLAIN "
				if db.Dialector.Name() == "sqlite" { ex = "EXPLAIN QUERY PLAN " }
				rows, _ := db.Raw(ex+c.query, sql.Named("sku", "")).Rows()
				cols, _ := rows.Columns()
				for rows.Next() {
					v := make([]sql.NullString, len(cols)); p := make([]any, len(cols)); for i := range v { p[i] = &v[i] }
					rows.Scan(p...)
					var o []string; for _, x := range v { o = append(o, x.String) }
					fmt.Println("   ", strings.Join(o, " | "))
				}
				rows.Close()
			}
		}
		start = time.Now()
		s := New(db)
		if err := s.Audit(t.Context(), "", func(stock.Account) error { return nil }, func(d stock.Difference) error { t.Error(d); return nil }); err != nil { t.Fatal(err) }
		fmt.Println("all", time.Since(start))
		start = time.Now()
		if err := s.Audit(t.Context(), "mug", func(stock.Account) error { return nil }, func(d stock.Difference) error { t.Error(d); return nil }); err != nil { t.Fatal(err) }
		fmt.Println("mug", time.Since(start))
		_ = store.Close
		})
	}
}
