package main

import (
	"fmt"

	"github.com/oncelog/oncelog/store/bolt"
)

// checkCmd checks a data directory offline.
type checkCmd struct {
	Dir    string `arg:"" optional:"" help:"The data directory. Default: that of --data."`
	Data   string `default:"./oncelog-data" placeholder:"DIR" help:"The data directory. Default ${default}."`
	Output string `default:"text" enum:"text,json" placeholder:"FORMAT" help:"text or json. Default ${default}."`
}

// Run checks every checksum, offset, segment and snapshot, and fails when something is
// not as it should be.
func (c *checkCmd) Run(std *stdio) error {
	dir := c.Dir
	if dir == "" {
		dir = c.Data
	}
	bar := newProgress(std, "checking", 0)
	report, err := bolt.Check(dir, bar.set)
	bar.end()
	if err != nil {
		return fmt.Errorf("check %s: %w", dir, err)
	}
	if err := writeReport(std, c.Output, report); err != nil {
		return err
	}
	if n := len(report.Problems); n > 0 {
		return fmt.Errorf("%s: %d problems found", dir, n)
	}
	return nil
}

// checkReport is a report as JSON output has it.
type checkReport struct {
	Problems   []string `json:"problems"`
	Topics     int64    `json:"topics"`
	Partitions int64    `json:"partitions"`
	Segments   int64    `json:"segments"`
	Batches    int64    `json:"batches"`
	Records    int64    `json:"records"`
	Snapshots  int64    `json:"snapshots"`
}

func writeReport(std *stdio, format string, r *bolt.Report) error {
	if format == outputJSON {
		out := checkReport{r.Problems, r.Topics, r.Partitions, r.Segments, r.Batches, r.Records, r.Snapshots}
		if out.Problems == nil {
			out.Problems = []string{}
		}
		return writeJSON(std.out, out)
	}
	for _, p := range r.Problems {
		if _, err := fmt.Fprintln(std.out, p); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(std.out, "%d topics, %d partitions, %d segments, %d batches, %d records, %d snapshots: %s\n",
		r.Topics, r.Partitions, r.Segments, r.Batches, r.Records, r.Snapshots, verdict(len(r.Problems)))
	return err
}

func verdict(problems int) string {
	if problems == 0 {
		return "no problems"
	}
	return fmt.Sprintf("%d problems", problems)
}
