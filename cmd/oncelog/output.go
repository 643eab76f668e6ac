package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

const outputJSON = "json"

// output is how commands that look things up print them: text, a line of heads and a
// line for each item, aligned on a terminal, else separated by tabs; or JSON, a line for
// each item, with the members that the API has.
type output struct {
	Output string `default:"text" enum:"text,json" placeholder:"FORMAT" help:"text or json. Default ${default}."`
}

// column is one value of the items of a table.
type column[T any] struct {
	head  string
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
		return writeRows(std.out, columns, items, false)
	}
	table := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	if err := writeRows(table, columns, items, true); err != nil {
		return err
	}
	return table.Flush()
}

// writeRows writes the heads and a line for each item, or nothing when there is none.
// For people, sizes get units; for programs they are numbers.
func writeRows[T any](w io.Writer, columns []column[T], items []T, people bool) error {
	if len(items) == 0 {
		return nil
	}
	heads := make([]string, len(columns))
	for i, c := range columns {
		heads[i] = c.head
	}
	if _, err := fmt.Fprintln(w, strings.Join(heads, "\t")); err != nil {
		return err
	}
	for _, item := range items {
		cells := make([]string, len(columns))
		for i, c := range columns {
			v := c.value(item)
			if size, ok := v.(byteSize); ok && !people {
				v = int64(size)
			}
			cells[i] = fmt.Sprint(v)
		}
		if _, err := fmt.Fprintln(w, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return nil
}

// counted is a number and what it counts, in the form that goes with it.
func counted[N int | int64](n N, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// writeJSON writes v as one line.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
