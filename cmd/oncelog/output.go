package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

const outputJSON = "json"

// output is how commands that look things up print them: text, aligned and with a
// header on a terminal, else a line of tab-separated values for each item; or JSON, a
// line for each item, with the members that the API has.
type output struct {
	Output string `default:"text" enum:"text,json" placeholder:"FORMAT" help:"text or json. Default ${default}."`
}

// column is one value of the items of a table.
type column[T any] struct {
	title string
	value func(T) any
}

// writeItems prints items as o says.
func writeItems[T any](std *stdio, o output, columns []column[T], items []T) error {
	if o.Output == outputJSON {
		for _, item := range items {
			if err := writeJSON(std.out, item); err != nil {
				return err
			}
		}
		return nil
	}
	if !isTerminal(std.out) {
		return writeRows(std.out, columns, items, "\t", false)
	}
	return writeTable(std.out, columns, items)
}

// writeTable aligns columns below a header.
func writeTable[T any](w io.Writer, columns []column[T], items []T) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	titles := make([]string, len(columns))
	for i, c := range columns {
		titles[i] = c.title
	}
	if _, err := fmt.Fprintln(table, strings.Join(titles, "\t")); err != nil {
		return err
	}
	if err := writeRows(table, columns, items, "\t", true); err != nil {
		return err
	}
	return table.Flush()
}

// writeRows writes a line for each item. For people, sizes get units; for programs
// they are numbers.
func writeRows[T any](w io.Writer, columns []column[T], items []T, separator string, people bool) error {
	for _, item := range items {
		cells := make([]string, len(columns))
		for i, c := range columns {
			v := c.value(item)
			if size, ok := v.(byteSize); ok && !people {
				v = int64(size)
			}
			cells[i] = fmt.Sprint(v)
		}
		if _, err := fmt.Fprintln(w, strings.Join(cells, separator)); err != nil {
			return err
		}
	}
	return nil
}

// writeJSON writes v as one line.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
