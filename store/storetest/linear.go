package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/sequence"
)

// Linearizability: there must be one order of all appends and reads of a partition,
// each between its call and its answer, in which the append rule gives every answer
// that was given (Herlihy and Wing; the checker is porcupine). Some callers give up
// early: what they asked for may take effect at any time after, or never.

const linearProducers = 3

// linearState is a partition as the rule has it.
type linearState struct {
	log       string // the values, each with a space after it
	next      int64
	producers [linearProducers]sequence.State
}

// linearInput is an append, or a read of everything when it has no batch.
type linearInput struct {
	producer int
	attempt  sequence.Attempt
	values   []string
}

type linearOutput struct {
	code store.Code
	ack  store.Ack
	log  string
	lost bool // the caller gave up: nobody knows what became of it
}

func linearModel() porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{linearState{}} },
		Step: func(state, input, output any) []any {
			s, okS := state.(linearState)
			in, okI := input.(linearInput)
			out, okO := output.(linearOutput)
			switch {
			case !okS || !okI || !okO:
				return nil
			case out.lost:
				return s.lost(in)
			case in.values == nil:
				return keepIf(out.code == "" && out.log == s.log, s)
			}
			return keepIf(s.append(in, out))
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v → %+v", input, output) },
	}
	return model.ToModel()
}

func keepIf(ok bool, s linearState) []any {
	if !ok {
		return nil
	}
	return []any{s}
}

// lost gives the states after an operation whose answer nobody got: an append may have
// been carried out or not.
func (s linearState) lost(in linearInput) []any {
	states := []any{s}
	if in.values == nil {
		return states
	}
	state := s.producers[in.producer]
	if sequence.Check(&state, in.attempt).Kind == sequence.Append {
		states = append(states, s.store(in))
	}
	return states
}

// store is the state after an append.
func (s linearState) store(in linearInput) linearState {
	state := s.producers[in.producer]
	s.producers[in.producer] = state.Apply(in.attempt, s.next, 0)
	s.log += strings.Join(in.values, " ") + " "
	s.next += int64(in.attempt.Count)
	return s
}

// append reports whether the rule can have given the answer, and the state after it.
func (s linearState) append(in linearInput, out linearOutput) (bool, linearState) {
	state := s.producers[in.producer]
	v := sequence.Check(&state, in.attempt)
	switch v.Kind {
	case sequence.Append:
		if out.code != "" || out.ack.Duplicate || out.ack.BaseOffset != s.next {
			return false, s
		}
		return true, s.store(in)
	case sequence.Duplicate:
		return out.code == "" && out.ack.Duplicate && out.ack.BaseOffset == v.Original.BaseOffset, s
	case sequence.Forgotten:
		return out.code == "" && out.ack.Duplicate && out.ack.BaseOffset == -1, s
	default:
		refusal := store.Refusal(&state, v, in.attempt)
		return out.code == refusal.Code, s
	}
}

func testLinearizability(t *testing.T, f Factory) {
	e := newEnv(t, f)
	for range 5 {
		history := e.record(e.topic())
		if !porcupine.CheckOperations(linearModel(), history) {
			for _, op := range history {
				t.Logf("%d: %d–%d %+v → %+v", op.ClientId, op.Call, op.Return, op.Input, op.Output)
			}
			t.Fatal("no order of these operations follows the rule")
		}
	}
}

// record lets several clients append, as the same producers, and read.
func (e *env) record(p store.Partition) []porcupine.Operation {
	e.t.Helper()
	const clients, steps = 5, 14
	var pids [linearProducers]int64
	for i := range pids {
		pids[i] = e.pid()
	}
	var mu sync.Mutex
	var history []porcupine.Operation
	start := time.Now()
	var wg sync.WaitGroup
	for client := range clients {
		random := rand.New(rand.NewPCG(uint64(client), uint64(e.topics)))
		wg.Go(func() {
			for range steps {
				in, a := randomLinear(random, p, pids)
				call := time.Since(start)
				out := e.linear(p, in, a, random.IntN(6) == 0)
				op := porcupine.Operation{
					ClientId: client, Input: in, Output: out,
					Call: int64(call), Return: int64(time.Since(start)),
				}
				mu.Lock()
				history = append(history, op)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	end := int64(time.Since(start))
	for i := range history {
		if out, ok := history[i].Output.(linearOutput); ok && out.lost {
			history[i].Return = end
		}
	}
	return history
}

// randomLinear picks an operation; the sequences are such that every kind of verdict
// comes up.
func randomLinear(random *rand.Rand, p store.Partition, pids [linearProducers]int64) (linearInput, store.Append) {
	if random.IntN(4) == 0 {
		return linearInput{}, store.Append{}
	}
	i := random.IntN(linearProducers)
	n := 1 + random.IntN(8)/7
	epoch, base := int64(random.IntN(12)/11), int64(random.IntN(7))
	values := Batch(fmt.Sprintf("%d.%d.%d.%d", i, epoch, base, random.IntN(10)/9), n)
	a := seqOf(p, pids[i], epoch, base, values)
	texts, _ := Values(values.Bytes) // just encoded
	return linearInput{producer: i, attempt: a.Attempt(), values: texts}, a
}

// linear carries an operation out, an append perhaps with a caller who soon gives up.
func (e *env) linear(p store.Partition, in linearInput, a store.Append, hasty bool) linearOutput {
	if in.values != nil {
		ctx, cancel := context.WithCancel(e.ctx)
		defer cancel()
		if hasty {
			go cancel()
		}
		ack, err := e.Append(ctx, a)
		if errors.Is(err, context.Canceled) {
			return linearOutput{lost: true}
		}
		return linearOutput{code: store.CodeOf(err), ack: ack}
	}
	r, err := e.Read(e.ctx, store.Read{Partition: p, MaxRecords: 1000, MaxBytes: 1 << 20})
	if err != nil {
		return linearOutput{code: store.CodeOf(err)}
	}
	values, _, err := valuesFrom(r, 0, e.f.Traits)
	if err != nil {
		e.t.Errorf("read: %v", err)
	}
	if len(values) == 0 {
		return linearOutput{}
	}
	return linearOutput{log: strings.Join(values, " ") + " "}
}
