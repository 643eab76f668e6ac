package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/oncelog/oncelog/cmd/oncelog/internal/bench"
)

// print prints the report as --output says.
func (c *benchCmd) print(std *stdio, r *benchReport) error {
	if c.Output == outputJSON {
		return writeJSON(std.out, r)
	}
	table := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	printLoad(table, &r.Load)
	printResult(table, r)
	if r.Compare != nil {
		printComparison(table, r)
	}
	return table.Flush()
}

func printLoad(w io.Writer, l *benchLoad) {
	partitions := counted(l.Partitions, "partition", "partitions")
	switch l.What {
	case "read":
		fmt.Fprintf(w, "load\treads of %s in %s pages, %s, %s\n", l.Format, byteSize(l.PageBytes), counted(l.Connections, "connection", "connections"), partitions)
		return
	case "go-producer":
		fmt.Fprintf(w, "load\t%s, %s, records of %s\n", counted(l.Producers, "Go producer", "Go producers"), partitions, byteSize(l.RecordBytes))
		return
	}
	how := "idempotent"
	if !l.Idempotent {
		how = "plain"
	}
	fmt.Fprintf(w, "load\t%s, %s, %s; %s %s batches of %d × %s\n", counted(l.Connections, "connection", "connections"),
		counted(l.Producers, "producer", "producers"), partitions, how, l.Format, l.BatchRecords, byteSize(l.RecordBytes))
}

func printResult(w io.Writer, r *benchReport) {
	retries := ""
	if r.Retries > 0 {
		retries = fmt.Sprintf(", %d of them retries", r.Retries)
	}
	fmt.Fprintf(w, "requests\t%.0f a second (%d in %.1f s%s)\n", r.RequestsPerSecond, r.Requests, r.Seconds, retries)
	fmt.Fprintf(w, "records\t%.0f a second\n", r.RecordsPerSecond)
	fmt.Fprintf(w, "bytes\t%.1f MB/s\n", r.BytesPerSecond/1e6)
	printLatency(w, "latency", &r.LatencyMs)
	if r.RetryLatencyMs != nil {
		printLatency(w, "of retries", r.RetryLatencyMs)
	}
	if s := r.Server; s != nil {
		if r.Load.What != "read" {
			fmt.Fprintf(w, "fsyncs\t%.0f a second; commits take %.2f ms and hold %.1f batches, %.1f records\n", s.FsyncsPerSecond, s.CommitMs, s.BatchesPerCommit, s.RecordsPerCommit)
			fmt.Fprintf(w, "dedup hits\t%d\n", s.DedupHits)
		}
		fmt.Fprintf(w, "server\t%.0f %% of a processor, %s of memory\n", 100*s.CPUSeconds/r.Seconds, byteSize(s.ResidentBytes))
	}
	if r.Server == nil {
		fmt.Fprintln(w, "server\tit does not show its metrics: fsyncs and commits are unknown")
	}
	for _, code := range r.Codes() {
		fmt.Fprintf(w, "refused\t%d times %s\n", r.Errors[code], code)
	}
}

func printLatency(w io.Writer, title string, l *bench.Latency) {
	fmt.Fprintf(w, "%s\tp50 %s  p90 %s  p99 %s  p99.9 %s  max %s\n", title, ms(l.P50), ms(l.P90), ms(l.P99), ms(l.P999), ms(l.Max))
}

// ms writes milliseconds with three digits.
func ms(v float64) string { return fmt.Sprintf("%.3g ms", v) }

func printComparison(w io.Writer, r *benchReport) {
	c := r.Compare
	unit, scale := map[string]string{byRequests: "requests", byRecords: "records", byBytes: "MB"}[c.By], 1.0
	if c.By == byBytes {
		scale = 1e6
	}
	var rates, ratios []string
	for _, b := range c.Baseline {
		rates = append(rates, fmt.Sprintf("%.0f", c.rate(b)/scale))
	}
	for _, ratio := range c.Ratios {
		ratios = append(ratios, fmt.Sprintf("%.1f %%", 100*ratio))
	}
	fmt.Fprintf(w, "%s\t%s %s a second\n", c.With, strings.Join(rates, ", "), unit)
	fmt.Fprintf(w, "ratio\t%.1f %%", 100*c.Ratio)
	if len(ratios) > 1 {
		fmt.Fprintf(w, ", the median of %s", strings.Join(ratios, ", "))
	}
	if c.With == compareFsync && r.Load.Connections == 1 {
		fmt.Fprintf(w, ": an answer takes %.2f times as long", 1/c.Ratio)
	}
	fmt.Fprintln(w)
}
