// Package stats sums up the rounds of a measurement and writes tables.
package stats

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Median returns the middle of the values, the mean of the two middle ones if their number is even, or 0 if there are
// none. It does not change values.
func Median[T ~int | ~int64 | ~float64](values []T) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return sorted[middle-1] + (sorted[middle]-sorted[middle-1])/2
}

// Each returns a figure of each round.
func Each[R, T any](rounds []R, figure func(R) T) (figures []T) {
	for _, one := range rounds {
		figures = append(figures, figure(one))
	}
	return figures
}

// Ratio returns the median of a[i]/b[i]. Both figures are from the same round, so that a slow round
// affects both. A round that only one side has, or in which either figure is 0, does not count. If no
// round is left, Ratio returns a dash.
func Ratio(a, b []float64) string {
	var ratios []float64
	for i := range min(len(a), len(b)) {
		if x, y := a[i], b[i]; x > 0 && y > 0 {
			ratios = append(ratios, x/y)
		}
	}
	if len(ratios) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", Median(ratios))
}

// Fold is like Table, for a terminal that is width characters wide. The columns that do not fit are in
// a table below, which repeats the first column.
func Fold(width int, header table.Row, rows []table.Row, from, to int) string {
	for shown := len(header); shown > 1; shown-- {
		var left, rest []table.Row
		for _, row := range rows {
			left = append(left, row[:shown])
			rest = append(rest, slices.Concat(row[:1], row[shown:]))
		}
		switch part := Table(header[:shown], left, from, to); {
		case text.LongestLineLen(part) > width:
		case shown == len(header):
			return part
		default:
			return part + "\n" + Fold(width, slices.Concat(header[:1], header[shown:]), rest, max(2, from-shown+1), to-shown+1)
		}
	}
	return Table(header, rows, from, to) // one column is too wide
}

// Table returns the lines of a table, with one rule under the header. The columns from..to, counted from 1, are aligned
// right.
func Table(header table.Row, rows []table.Row, from, to int) string {
	const gap = "  " // before each column; removed before the first
	style := table.StyleLight
	style.Options = table.Options{SeparateHeader: true}
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = gap, ""
	t := table.NewWriter()
	t.SetStyle(style)
	t.AppendHeader(header)
	t.AppendRows(rows)
	var right []table.ColumnConfig
	for number := from; number <= to; number++ {
		right = append(right, table.ColumnConfig{Number: number, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(right)
	var lines strings.Builder
	for line := range strings.Lines(t.Render()) {
		lines.WriteString(strings.TrimRight(string([]rune(line)[len(gap):]), " \n") + "\n")
	}
	return lines.String()
}
