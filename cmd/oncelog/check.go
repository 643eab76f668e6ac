package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/oncelog/oncelog/store/bolt"
)

// checkCmd checks a data directory offline.
type checkCmd struct {
	Dir    string `arg:"" optional:"" help:"The data directory. Default: that of --data."`
	Data   string `env:"ONCELOG_DATA" default:"./oncelog-data" placeholder:"DIR" help:"The data directory. Default ${default}."`
	Output string `default:"text" enum:"text,json" placeholder:"FORMAT" help:"text or json. Default ${default}."`
}

// Help is what follows the description in the command's help.
func (checkCmd) Help() string {
	return `Reads the whole store and proves it: pages of the file, checksums of records, offsets and sequences without a hole, snapshots that agree with the log. It changes nothing. Stop the server first, or check a copy.

Exit codes: 0 no problems; 1 it could not be examined; 2 bad flags; 3 damaged, each problem is a line of the output; 4 in use by a server; 5 there is no store in the directory.`
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
		return checkFailure(fmt.Errorf("check %s: %w", dir, err))
	}
	if err := writeReport(std, c.Output, report); err != nil {
		return err
	}
	if n := len(report.Problems); n > 0 {
		return &exitError{exitDamaged, fmt.Errorf("%s: %s found", dir, counted(n, "problem", "problems"))}
	}
	return nil
}

// checkFailure gives the reasons for not examining a directory their exit codes.
func checkFailure(err error) error {
	switch {
	case errors.Is(err, bolt.ErrInUse):
		return &exitError{exitInUse, err}
	case errors.Is(err, fs.ErrNotExist):
		return &exitError{exitMissing, err}
	}
	return err
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
	_, err := fmt.Fprintf(std.out, "%s, %s, %s, %s, %s, %s: %s\n",
		counted(r.Topics, "topic", "topics"), counted(r.Partitions, "partition", "partitions"),
		counted(r.Segments, "segment", "segments"), counted(r.Batches, "batch", "batches"),
		counted(r.Records, "record", "records"), counted(r.Snapshots, "snapshot", "snapshots"),
		verdict(len(r.Problems)))
	return err
}

func verdict(problems int) string {
	if problems == 0 {
		return "no problems"
	}
	return counted(problems, "problem", "problems")
}
