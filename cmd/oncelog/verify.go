package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/oncelog/oncelog/cmd/oncelog/internal/verify"
	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

// verifyTimeout bounds one request of a verification. To verify a snapshot, the server may
// have to go through all of a large log.
const verifyTimeout = 10 * time.Minute

// verifyCmd proves what a running server has stored.
type verifyCmd struct {
	remote
	output
	snapshotFilter
}

// Help is what follows the description in the command's help.
func (verifyCmd) Help() string {
	return `Reads all batches of a server's partitions, over the network, and proves: offsets without a gap; checksums right; each producer's sequences without a gap or a double; the state that the server has of producers is the one that follows from the log; segments add up; snapshots agree with the log. Appends go on meanwhile. It needs the scopes consume and admin, for snapshots are verified by the server. oncelog check proves the same of a data directory that no server is using, and of the pages of its file.

Exit codes: 0 it is all so; 1 it could not be verified; 2 bad flags; 3 something is not as it should be, each fault is a line of the output.`
}

// Run verifies the partitions and says what it has proved.
func (c *verifyCmd) Run(ctx context.Context, std *stdio) error {
	client, err := c.client(producer.WithRequestTimeout(verifyTimeout))
	if err != nil {
		return err
	}
	topics, err := c.topics(ctx, client)
	if errors.Is(err, producer.CodeRecordsDamaged) {
		return &exitError{exitDamaged, explain(err)}
	}
	if err != nil {
		return explain(err)
	}
	total := verify.Result{}
	partitions, problems := 0, 0
	for _, t := range topics {
		for n := range t.Partitions {
			if c.Partition != nil && *c.Partition != n {
				continue
			}
			r, err := c.one(ctx, std, client, t.Name, n)
			if errors.Is(err, producer.CodeUnknownTopic) && c.Topic == "" {
				break // deleted meanwhile
			}
			if err != nil {
				return fmt.Errorf("%s/%d: %w", t.Name, n, explain(err))
			}
			partitions++
			problems += len(r.Problems)
			total.Batches += r.Batches
			total.Records += r.Records
			total.Producers += r.Producers
			total.Snapshots += r.Snapshots
		}
	}
	if c.Partition != nil && partitions == 0 {
		return fmt.Errorf("topic %q has no partition %d", c.Topic, *c.Partition)
	}
	if c.Topic == "" {
		lost, err := c.lost(ctx, std, client)
		if err != nil {
			return err
		}
		problems += lost
	}
	if c.Output != outputJSON {
		_, err = fmt.Fprintf(std.out, "%s, %s, %s, %s, %s: %s\n", counted(partitions, "partition", "partitions"),
			counted(total.Batches, "batch", "batches"), counted(total.Records, "record", "records"),
			counted(total.Producers, "producer", "producers"), counted(total.Snapshots, "snapshot", "snapshots"), verdict(problems))
	}
	if problems > 0 {
		return &exitError{exitDamaged, fmt.Errorf("%s found", counted(problems, "problem", "problems"))}
	}
	return err
}

// lost says how many topics and partitions the server itself has put out of service. A topic
// whose row is damaged is in no list, for its name is not known.
func (c *verifyCmd) lost(ctx context.Context, std *stdio, client *producer.Client) (int, error) {
	text, err := client.Metrics(ctx)
	if errors.Is(err, producer.CodeForbidden) {
		return 0, nil // who may see some topics only proves those
	}
	if err != nil {
		return 0, explain(err)
	}
	for line := range strings.Lines(string(text)) {
		value, ok := strings.CutPrefix(line, "oncelog_partitions_out_of_service ")
		if !ok {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if err != nil || n == 0 {
			return 0, err
		}
		p := counted(n, "topic or partition is", "topics or partitions are") + " out of service, for what is stored of it is damaged; oncelog check tells more"
		if c.Output == outputJSON {
			return n, writeJSON(std.out, verify.Result{Partition: -1, Problems: []string{p}})
		}
		_, err = fmt.Fprintln(std.out, p)
		return n, err
	}
	return 0, errors.New("the server's metrics do not say whether anything is out of service")
}

func (c *verifyCmd) topics(ctx context.Context, client *producer.Client) ([]openapi.Topic, error) {
	if c.Topic != "" {
		t, err := client.Topic(ctx, c.Topic)
		return []openapi.Topic{t}, err
	}
	return allPages(func(p producer.Page) ([]openapi.Topic, *string, error) {
		list, err := client.Topics(ctx, p)
		return list.Items, list.NextPageToken, err
	})
}

// one verifies a partition and prints the outcome.
func (c *verifyCmd) one(ctx context.Context, std *stdio, client *producer.Client, topic string, n int) (*verify.Result, error) {
	bar := newCounter(std, fmt.Sprintf("%s/%d", topic, n))
	r, err := verify.Partition(ctx, client, topic, n, bar.set)
	bar.end()
	if err != nil {
		return nil, err
	}
	if c.Output == outputJSON {
		return r, writeJSON(std.out, r)
	}
	name := fmt.Sprintf("%s/%d", topic, n)
	for _, p := range r.Problems {
		if _, err := fmt.Fprintf(std.out, "%s: %s\n", name, p); err != nil {
			return nil, err
		}
	}
	if len(r.Problems) == 0 {
		_, err = fmt.Fprintf(std.out, "%s: %s\n", name, proved(r))
	}
	return r, err
}

// proved says in words what a result without problems stands for.
func proved(r *verify.Result) string {
	if r.NextOffset == 0 {
		return "empty"
	}
	s := fmt.Sprintf("offsets %d to %d without a gap, %s with right checksums, no sequence missing or twice; %s",
		r.EarliestOffset, r.NextOffset-1, counted(r.Batches, "batch", "batches"), counted(r.Producers, "producer as the log has it", "producers as the log has them"))
	if r.Batches == 0 {
		s = fmt.Sprintf("all records below offset %d are gone; %s", r.NextOffset, counted(r.Producers, "producer", "producers"))
	}
	if r.Older > 0 {
		s += fmt.Sprintf(", %d from before the log begins", r.Older)
	}
	if r.Expired > 0 {
		s += fmt.Sprintf(", %d expired", r.Expired)
	}
	return s + "; " + counted(r.Snapshots, "snapshot agrees", "snapshots agree")
}
