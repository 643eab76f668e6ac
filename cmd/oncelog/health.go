package main

import (
	"context"
	"fmt"
	"time"
)

// healthCmd asks a server whether it takes appends, for containers that have no other
// program to do so.
type healthCmd struct {
	remote

	Timeout time.Duration `default:"5s" help:"How long to wait for the answer. Default ${default}."`
}

// Help is what follows the one line in the help of the command.
func (healthCmd) Help() string {
	return "Exit codes: 0 it takes appends; 1 it does not, and the message says why: it is opening its store, stopping, has no space, or a write to its disk has failed."
}

// Run asks.
func (c *healthCmd) Run(ctx context.Context, std *stdio) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	if err := client.Ready(limited); err != nil {
		return explain(err)
	}
	_, err = fmt.Fprintln(std.out, "ready")
	return err
}
