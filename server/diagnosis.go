package server

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/store"
)

// Levels of a finding.
const (
	levelOK        = "ok"
	levelAttention = "attention"
	levelTrouble   = "trouble"
)

// Codes of findings that are no problem codes.
const (
	findingLastingGap  = "lasting-gap"
	findingDiskLow     = "disk-low"
	findingCommitsSlow = "commits-slow"
	findingCrowded     = "producers-many"
)

const (
	maxIncidents = 512 // looked at in one second
	maxFindings  = 16
	maxGaps      = 256 // remembered
	// lookAtGaps bounds the time in which it is looked whether gaps are filled.
	lookAtGaps = 100 * time.Millisecond

	tellRefusals = time.Minute     // how long refusals are told that harm nobody but their sender
	tellReuse    = 5 * time.Minute // how long it is told that a payload was not stored
	forgetGap    = 24 * time.Hour  // after the last refusal of a gap that nobody fills

	lowDisk    = 256 << 20
	slowCommit = time.Second
)

// doctor remembers what it takes to tell how the server is doing.
type doctor struct {
	gaps    map[producerAt]store.Incident // the last refusal of each gap that may be open
	refused map[refusal]store.Incident    // the last one of each kind that is still worth telling
}

// producerAt is a producer in a partition.
type producerAt struct {
	partition store.Partition
	pid       int64
}

type refusal struct {
	producerAt
	code store.Code
}

// visit is what the doctor is told.
type visit struct {
	now       time.Time
	store     store.Store // nil: it is being opened
	unready   error       // why the server takes no appends, if it does not
	stats     *store.Stats
	commits   *openapi.EventCommits
	incidents []store.Incident // since the visit before
}

// diagnose says how the server is doing.
func (d *doctor) diagnose(v *visit) openapi.Diagnosis {
	d.note(v)
	var findings []openapi.Finding
	if f, ok := serviceFinding(v.unready); ok {
		findings = append(findings, f)
	}
	findings = append(findings, d.gapFindings()...)
	findings = append(findings, d.refusalFindings()...)
	findings = append(findings, resourceFindings(v)...)
	slices.SortStableFunc(findings, func(a, b openapi.Finding) int {
		return cmp.Compare(b.Level, a.Level) // "trouble" is above "attention"
	})
	out := openapi.Diagnosis{Level: levelOK, Findings: findings[:min(len(findings), maxFindings)]}
	if len(findings) > 0 {
		first := &findings[0]
		out.Level, out.Sentence, out.Advice = first.Level, first.Sentence, first.Advice
		return out
	}
	out.Findings = []openapi.Finding{}
	out.Sentence, out.Advice = allWell(v.stats)
	return out
}

// allWell says it when there is nothing to be done.
func allWell(s *store.Stats) (sentence, advice string) {
	switch {
	case s.Accepted == 0 && s.Duplicates == 0:
		return "Ready. Nothing has been appended since the server started.", "Try it sends a batch twice and shows what becomes of it."
	case s.Duplicates == 0:
		return "Nothing lost, nothing doubled.", "No batch has come twice since the server started."
	case s.Duplicates == 1:
		return "Nothing lost, nothing doubled.", "One batch came twice since the server started, and was stored once."
	}
	return "Nothing lost, nothing doubled.", fmt.Sprintf("%s batches came again since the server started, and were stored once.", grouped(s.Duplicates))
}

// note takes in what has happened since the visit before.
func (d *doctor) note(v *visit) {
	if d.gaps == nil {
		d.gaps, d.refused = map[producerAt]store.Incident{}, map[refusal]store.Incident{}
	}
	for i := range v.incidents {
		in := &v.incidents[i]
		who := producerAt{in.Partition, in.Producer.ID}
		switch {
		case in.Code == "": // stored
		case in.Code == store.CodeOutOfOrderSequence:
			if _, open := d.gaps[who]; in.Lasting && (open || len(d.gaps) < maxGaps) {
				d.gaps[who] = *in
			}
		default:
			why := refusal{who, in.Code}
			if _, told := d.refused[why]; told || len(d.refused) < maxGaps {
				d.refused[why] = *in
			}
		}
	}
	for r, in := range d.refused {
		tell := tellRefusals
		if r.code == store.CodeSequenceReused {
			tell = tellReuse
		}
		if v.now.Sub(in.At) > tell {
			delete(d.refused, r)
		}
	}
	if v.store != nil {
		d.closeGaps(v)
	}
}

// closeGaps forgets the gaps that have been filled: what was expected has come, or the
// producer has begun anew.
func (d *doctor) closeGaps(v *visit) {
	ctx, cancel := context.WithTimeout(context.Background(), lookAtGaps)
	defer cancel()
	for who, in := range d.gaps {
		state, err := v.store.PartitionProducer(ctx, who.partition, who.pid)
		switch store.CodeOf(err) {
		case "":
			epoch, next := state.State.Epoch(), state.State.NextSeq()
			if epoch > in.Producer.Epoch || epoch == in.Producer.Epoch && next > in.ExpectedSeq {
				delete(d.gaps, who)
				continue
			}
		case store.CodeUnknownTopic, store.CodeUnknownPartition, store.CodeTopicDeleting:
			delete(d.gaps, who)
			continue
		default:
		}
		if v.now.Sub(in.At) > forgetGap {
			delete(d.gaps, who)
		}
	}
}

// gapFindings tells of the gaps that are open, the newest first.
func (d *doctor) gapFindings() []openapi.Finding {
	return newestFirst(d.gaps, func(in *store.Incident) openapi.Finding {
		what := fmt.Sprintf("sequences %s to %s are missing", grouped(in.ExpectedSeq), grouped(in.Producer.BaseSeq-1))
		if in.ExpectedSeq == in.Producer.BaseSeq-1 {
			what = fmt.Sprintf("sequence %s is missing", grouped(in.ExpectedSeq))
		}
		if in.CurrentEpoch >= 0 && in.CurrentEpoch < in.Producer.Epoch {
			what += fmt.Sprintf(" of its new epoch %s", grouped(in.Producer.Epoch))
		}
		return finding(in, levelTrouble, findingLastingGap,
			fmt.Sprintf("Producer %s has left a gap in %s: %s.", grouped(in.Producer.ID), name(in.Partition), what),
			fmt.Sprintf("Its sender has to send them again, from sequence %s on; until then it is refused. "+
				"If it no longer has them, they are lost: it goes on with a higher epoch, from sequence 0.", grouped(in.ExpectedSeq)))
	})
}

// refusalFindings tells of what was refused lately, the newest first.
func (d *doctor) refusalFindings() []openapi.Finding {
	return newestFirst(d.refused, func(in *store.Incident) openapi.Finding {
		who, where := grouped(in.Producer.ID), name(in.Partition)
		switch in.Code {
		case store.CodeSequenceReused:
			return finding(in, levelTrouble, string(in.Code),
				fmt.Sprintf("Producer %s used sequences of %s again for another payload, which was not stored.", who, where),
				fmt.Sprintf("Sequences %s to %s are those of the batch at offset %s. Two programs share this producer id, or one has lost its place: each needs an id of its own.",
					grouped(in.Producer.BaseSeq), grouped(in.LastSeq()), grouped(in.Offset)))
		case store.CodeSequenceOverlap:
			return finding(in, levelTrouble, string(in.Code),
				fmt.Sprintf("Producer %s sent a batch to %s that overlaps stored ones, which was refused.", who, where),
				fmt.Sprintf("A batch has to be sent again as it was, neither merged nor split. The next new sequence is %s.", grouped(in.ExpectedSeq)))
		case store.CodeProducerFenced:
			return finding(in, levelAttention, string(in.Code),
				fmt.Sprintf("A sender of producer %s still uses epoch %s in %s, and is fenced off.", who, grouped(in.Producer.Epoch), where),
				fmt.Sprintf("Epoch %s has replaced it. If the old sender should be gone, stop it; nothing of it is stored.", grouped(in.CurrentEpoch)))
		default:
			return finding(in, levelAttention, string(in.Code),
				fmt.Sprintf("Producer %s had expired in %s, and a batch of it was refused.", who, where),
				fmt.Sprintf("It goes on with an epoch above %s, from sequence 0. If it pauses for so long, raise the topic's producerExpiryMs.", grouped(in.CurrentEpoch)))
		}
	})
}

// serviceFinding tells why the server takes no appends, if it does not.
func serviceFinding(err error) (openapi.Finding, bool) {
	f := openapi.Finding{Code: codeOf(err), Level: levelAttention}
	switch store.Code(f.Code) {
	case "":
		return f, false
	case store.CodeNotReady:
		f.Sentence = "The server is opening its store."
		f.Advice = "It answers not-ready until it has read what it needs. Clients retry by themselves; there is nothing to do."
	case store.CodeDraining:
		f.Sentence = "The server is shutting down."
		f.Advice = "It finishes what is in flight and takes no more. Clients retry by themselves when it is back."
	case store.CodeStorageFull:
		f.Level, f.Sentence = levelTrouble, "There is no space left: appends are refused, reads go on."
		f.Advice = "Delete or trim topics, shorten retention, make room on the disk, or raise the bound of --max-store-bytes. Appends are taken again by themselves. Nothing that was acknowledged is lost."
	case store.CodeStorageFailed:
		f.Level, f.Sentence = levelTrouble, "The storage has failed: no appends are taken until the server is restarted."
		f.Advice = "Look at the disk and at the server's log, then restart it. What was acknowledged before is on disk; what got no answer has to be sent again."
	default:
		f.Level, f.Sentence, f.Advice = levelTrouble, "The server takes no appends.", err.Error()
	}
	return f, true
}

// resourceFindings tells of what may become a problem.
func resourceFindings(v *visit) []openapi.Finding {
	var out []openapi.Finding
	if free := v.stats.DiskFree; v.store != nil && v.unready == nil && free >= 0 && free+v.stats.FreeBytes < lowDisk {
		out = append(out, openapi.Finding{
			Level: levelAttention, Code: findingDiskLow,
			Sentence: fmt.Sprintf("Only %d MiB are free for the store.", (free+v.stats.FreeBytes)>>20),
			Advice:   "Appends are refused when the reserve is reached. Make room on the disk, or trim topics.",
		})
	}
	if p99 := time.Duration(v.commits.P99Micros) * time.Microsecond; p99 > slowCommit {
		out = append(out, openapi.Finding{
			Level: levelAttention, Code: findingCommitsSlow,
			Sentence: fmt.Sprintf("Commits take up to %.1f s.", p99.Seconds()),
			Advice:   "Each append waits for the disk to confirm it. Look whether something else keeps the disk busy.",
		})
	}
	if n := v.stats.NearMaxProducers; n > 0 {
		f := openapi.Finding{
			Level: levelAttention, Code: findingCrowded,
			Sentence: fmt.Sprintf("%d partitions remember almost as many producers as they may.", n),
			Advice: "Beyond maxProducers of its topic, a partition forgets those that have been quiet for longest. " +
				"Let senders keep their producer ids instead of taking new ones, or raise the topic's maxProducers.",
		}
		if n == 1 {
			f.Sentence = "A partition remembers almost as many producers as it may."
		}
		out = append(out, f)
	}
	return out
}

// newestFirst describes incidents.
func newestFirst[K comparable](of map[K]store.Incident, describe func(*store.Incident) openapi.Finding) []openapi.Finding {
	all := make([]store.Incident, 0, len(of))
	for _, in := range of {
		all = append(all, in)
	}
	slices.SortFunc(all, func(a, b store.Incident) int { return cmp.Compare(b.Number, a.Number) })
	out := make([]openapi.Finding, len(all))
	for i := range all {
		out[i] = describe(&all[i])
	}
	return out
}

func finding(in *store.Incident, level, code, sentence, advice string) openapi.Finding {
	return openapi.Finding{
		Level: level, Code: code, Sentence: sentence, Advice: advice,
		Topic: in.Partition.Topic, Partition: &in.Partition.Number, PID: &in.Producer.ID,
	}
}

// grouped writes a count as the status page does: 12,345.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func name(p store.Partition) string { return fmt.Sprintf("%s/%d", p.Topic, p.Number) }
