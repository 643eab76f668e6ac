package server

import (
	"errors"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/store"
)

// Outcomes of an incident.
const (
	outcomeDuplicate = "duplicate"
	outcomeHeld      = "held"
	outcomeRefused   = "refused"
)

func incidentBodies(incidents []store.Incident) []openapi.Incident {
	out := make([]openapi.Incident, len(incidents))
	for i := range incidents {
		out[i] = incidentBody(&incidents[i])
	}
	return out
}

func incidentBody(i *store.Incident) openapi.Incident {
	body := openapi.Incident{
		At: formatTime(i.At), Topic: i.Partition.Topic, Partition: i.Partition.Number,
		PID: i.Producer.ID, Epoch: i.Producer.Epoch, BaseSeq: i.Producer.BaseSeq, LastSeq: i.LastSeq(),
		Outcome: outcomeRefused, Code: string(i.Code), Lasting: i.Lasting,
		ExpectedSeq: known(i.ExpectedSeq), CurrentEpoch: known(i.CurrentEpoch), Offset: known(i.Offset),
	}
	switch {
	case i.Duplicate():
		body.Outcome = outcomeDuplicate
	case i.Code == "":
		body.Outcome = outcomeHeld
	}
	if i.Waited > 0 {
		ms := max(int64(i.Waited/time.Millisecond), 1)
		body.WaitedMs = &ms
	}
	return body
}

// known gives a number that may be missing, which −1 stands for.
func known(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

func heldBodies(held []store.HeldBatch) []openapi.HeldBatch {
	var out []openapi.HeldBatch
	for _, h := range held {
		out = append(out, openapi.HeldBatch{Epoch: h.Epoch, BaseSeq: h.BaseSeq, LastSeq: h.LastSeq, Since: formatTime(h.Since)})
	}
	return out
}

// codeOf returns the problem code of err, "" for nil.
func codeOf(err error) string {
	if p, ok := errors.AsType[*problem](err); ok {
		return p.code
	}
	return string(store.CodeOf(err))
}
