package main

import (
	"bytes"
	"fmt"
	"os"

	"example.com/shop/loadtest/report"
	"example.com/shop/loadtest/report/page"
)

// save writes the report where it was asked for.
func (l lab) save(r report.Report) error {
	if l.HTML != "" {
		var b bytes.Buffer
		if err := page.Write(&b, r); err != nil {
			return err
		}
		if err := os.WriteFile(l.HTML, b.Bytes(), 0o644); err != nil { //nolint:gosec // a report is no secret
			return fmt.Errorf("--html: %w", err)
		}
		fmt.Fprintf(l.screen.out, "\nThe report is in %s\n", l.HTML)
	}
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		return err
	}
	switch l.JSON {
	case "":
		return nil
	case "-":
		_, err := b.WriteTo(l.screen.json)
		return err
	}
	return os.WriteFile(l.JSON, b.Bytes(), 0o644) //nolint:gosec // a report is no secret
}
