package main

import (
	"context"
	"fmt"

	"github.com/oncelog/oncelog/store/bolt"
)

// compactCmd gives the free space in a store's file back.
type compactCmd struct {
	Dir  string `arg:"" optional:"" help:"The data directory. Default: that of --data."`
	Data string `env:"ONCELOG_DATA" default:"./oncelog-data" placeholder:"DIR" help:"The data directory. Default ${default}."`
}

// Help is what follows the description in the command's help.
func (compactCmd) Help() string {
	return `The file of a store grows and never shrinks: what deletion and retention free is used again. This command writes what is in use to a new file beside it, for which there must be space, reads it again, and puts it in the place of the old one when it is the same. Stop the server first.

Exit codes: 0 done; 1 failed, the old file is there as it was; 2 bad flags; 4 in use by a server; 5 there is no store in the directory.`
}

// Run compacts it.
func (c *compactCmd) Run(ctx context.Context, std *stdio) error {
	dir := c.Dir
	if dir == "" {
		dir = c.Data
	}
	bar := newProgress(std, "compacting", 0)
	done, err := bolt.Compact(ctx, dir, bar.set)
	bar.end()
	if err != nil {
		return checkFailure(fmt.Errorf("compact %s: %w", dir, err))
	}
	_, err = fmt.Fprintf(std.out, "%s: %d bytes before, %d after; %s written and read again\n",
		dir, done.Before, done.After, counted(done.Rows, "row", "rows"))
	return err
}
