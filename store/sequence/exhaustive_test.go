package sequence_test

import (
	"testing"

	"github.com/oncelog/oncelog/store/sequence"
)

// The small world: every attempt with these numbers.
const (
	smallEpoch = 2
	smallBase  = 6
	smallCount = 3
)

func smallWorld() []sequence.Attempt {
	var all []sequence.Attempt
	for epoch := range int64(smallEpoch + 1) {
		for base := range int64(smallBase + 1) {
			for count := range int32(smallCount) {
				all = append(all, try(epoch, base, count+1, payloadA), try(epoch, base, count+1, payloadB))
			}
		}
	}
	return all
}

// place is a state and the history that led there.
type place struct {
	state sequence.State
	twin  twin
}

// append stores a batch. Its offset and arrival follow from its sequence, so that
// histories meet again in a new epoch: else the small world would not be small.
func (p *place) append(a sequence.Attempt) place {
	offset := 1000 + 100*a.Epoch + 10*a.BaseSeq
	return place{p.state.Apply(a, offset, 2*offset), p.twin.store(a, offset, 2*offset)}
}

func (p *place) expire() place {
	at := 5000 + p.state.NextSeq()
	return place{p.state.Expire(at), p.twin.expire(at)}
}

// key tells places apart: by the state and by all that the twin will ever look at,
// which is the current epoch and what lies before it not at all. The batches of an
// epoch are at most smallBase+1, of at most smallCount records.
func (p *place) key() any {
	type key struct {
		state sequence.State
		epoch [smallBase + 1]stored
		dead  bool
	}
	k := key{state: p.state, dead: p.twin.expired}
	copy(k.epoch[:], p.twin.current())
	return k
}

// Every history of the small world is walked to its end, and in every place that it
// leads to each attempt is made: rule and twin must agree on verdict and state. There
// is no bound on the length of a history but the world's own.
func TestSmallWorldExhaustively(t *testing.T) {
	attempts := smallWorld()
	queue := []place{{}}
	seen := map[any]bool{queue[0].key(): true}
	kinds := map[sequence.Kind]int{}
	visit := func(p place) {
		if k := p.key(); !seen[k] {
			seen[k] = true
			queue = append(queue, p)
		}
	}
	for len(queue) > 0 {
		p := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if what := p.twin.differs(&p.state) + invariant(&p.state); what != "" {
			t.Fatalf("after %+v: %s", p.twin, what)
		}
		for _, a := range attempts {
			before := p.state
			got, want := sequence.Check(&p.state, a), p.twin.judge(a)
			if got != want {
				t.Fatalf("after %+v\n%+v is\n%+v, the twin says\n%+v", p.twin, a, got, want)
			}
			if p.state != before {
				t.Fatalf("after %+v\n%+v has changed the state", p.twin, a)
			}
			kinds[got.Kind]++
			if got.Kind == sequence.Append {
				visit(p.append(a))
			}
		}
		// A tombstone expires no more: engines ask whether the state is live.
		if !p.twin.expired {
			visit(p.expire())
		}
	}
	for k := sequence.Append; k <= sequence.Expired; k++ {
		if kinds[k] == 0 {
			t.Errorf("the small world never saw %v", k)
		}
	}
	t.Logf("%d places, verdicts %v", len(seen), kinds)
}
