package server_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/server"
	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/memory"
)

// diagnosis waits for the next event.
func diagnosis(t *testing.T, h http.Handler) openapi.Diagnosis {
	t.Helper()
	e := listen(t, h, "?history=0")
	defer e.close()
	time.Sleep(time.Second)
	_, events := e.samples(t)
	return events[len(events)-1].Diagnosis
}

// says fails the test unless the diagnosis has these findings and its sentence the words.
func says(t *testing.T, d openapi.Diagnosis, level string, words string, codes ...string) {
	t.Helper()
	var got []string
	for _, f := range d.Findings {
		if got = append(got, f.Code); f.Sentence == "" || f.Advice == "" {
			t.Errorf("finding %+v", f)
		}
	}
	if d.Level != level || strings.Join(got, " ") != strings.Join(codes, " ") || !strings.Contains(d.Sentence, words) || d.Advice == "" {
		t.Errorf("%+v; want %s, %q, %v", d, level, words, codes)
	}
}

// farAhead is a gap that the memory engine takes for a lasting one.
const farAhead = 1_000_000

func TestDiagnosisOfALastingGap(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server, _ *memory.Store) {
		says(t, diagnosis(t, s), "ok", "Nothing has been appended")
		pid, stranger := newPID(t, s), newPID(t, s)
		appendTo(t, s, 1, pid, 0, 0, 3, http.StatusOK)
		says(t, diagnosis(t, s), "ok", "Nothing lost, nothing doubled.")
		appendTo(t, s, 1, pid, 0, 4, 1, http.StatusConflict)
		says(t, diagnosis(t, s), "ok", "Nothing lost") // that one may be on its way

		appendTo(t, s, 1, pid, 0, farAhead, 1, http.StatusConflict)
		d := diagnosis(t, s)
		says(t, d, "trouble", "Producer 0 has left a gap in t/1: sequences 3 to 999,999 are missing.", "lasting-gap")
		if f := d.Findings[0]; f.Topic != "t" || *f.Partition != 1 || *f.PID != pid || !strings.Contains(f.Advice, "from sequence 3 on") {
			t.Errorf("finding %+v", f)
		}
		time.Sleep(time.Hour)
		says(t, diagnosis(t, s), "trouble", "are missing", "lasting-gap") // it stays until it is filled
		appendTo(t, s, 1, pid, 0, 3, 1, http.StatusOK)
		says(t, diagnosis(t, s), "ok", "Nothing lost")

		// A producer that the partition does not know, and one that begins anew.
		appendTo(t, s, 0, stranger, 2, farAhead, 1, http.StatusConflict)
		says(t, diagnosis(t, s), "trouble", "sequences 0 to 999,999 are missing", "lasting-gap")
		appendTo(t, s, 0, stranger, 3, 0, 1, http.StatusOK)
		says(t, diagnosis(t, s), "ok", "Nothing lost")

		appendTo(t, s, 0, stranger, 3, farAhead, 1, http.StatusConflict)
		says(t, diagnosis(t, s), "trouble", "are missing", "lasting-gap")
		send(s, http.MethodDelete, "/topics/t", "")
		says(t, diagnosis(t, s), "ok", "Nothing lost")
	})
}

func TestDiagnosisOfRefusals(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server, st *memory.Store) {
		pid := newPID(t, s)
		appendTo(t, s, 0, pid, 1, 0, 2, http.StatusOK)
		appendTo(t, s, 0, pid, 1, 0, 2, http.StatusOK)
		says(t, diagnosis(t, s), "ok", "Nothing lost")
		if d := diagnosis(t, s); !strings.Contains(d.Advice, "One batch came twice") {
			t.Errorf("advice %q", d.Advice)
		}
		appendTo(t, s, 0, pid, 0, 2, 1, http.StatusConflict)
		says(t, diagnosis(t, s), "attention", "A sender of producer 0 still uses epoch 0 in t/0", "producer-fenced")
		reused := `{"pid":0,"epoch":1,"baseSeq":0,"records":[{"value":2},{"value":3}]}`
		if w := send(s, http.MethodPost, "/topics/t/partitions/0/batches", reused); w.Code != http.StatusUnprocessableEntity {
			t.Fatal(w.Body)
		}
		says(t, diagnosis(t, s), "trouble", "used sequences of t/0 again", "sequence-reused", "producer-fenced")
		time.Sleep(2 * time.Minute)
		says(t, diagnosis(t, s), "trouble", "used sequences of t/0 again", "sequence-reused")
		time.Sleep(5 * time.Minute)
		says(t, diagnosis(t, s), "ok", "Nothing lost")

		appendTo(t, s, 0, pid, 1, 1, 4, http.StatusConflict)
		says(t, diagnosis(t, s), "trouble", "overlaps stored ones", "sequence-overlap")
		time.Sleep(2 * time.Minute)
		if err := st.ExpireProducer(t.Context(), store.Partition{Topic: "t"}, pid); err != nil {
			t.Fatal(err)
		}
		appendTo(t, s, 0, pid, 1, 2, 1, http.StatusConflict)
		says(t, diagnosis(t, s), "attention", "had expired in t/0", "producer-expired")
	})
}

// unreadyStore takes no appends.
type unreadyStore struct {
	store.Store
	err error
}

func (u unreadyStore) Ready() error { return u.err }

func TestDiagnosisOfTheStore(t *testing.T) {
	for code, words := range map[store.Code]string{
		store.CodeStorageFull: "no space left", store.CodeStorageFailed: "storage has failed", store.CodeInternal: "takes no appends",
	} {
		synctest.Test(t, func(t *testing.T) {
			s, err := server.New(server.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Drain()
			s.Serve(unreadyStore{memory.Open(memory.Options{}), store.Errorf(code, "no")})
			says(t, diagnosis(t, s), "trouble", words, string(code))
		})
	}
}

// statsStore is a store that tells other numbers.
type statsStore struct {
	store.Store
	change func(*store.Stats)
}

func (s statsStore) Stats() store.Stats {
	st := s.Store.Stats()
	s.change(&st)
	return st
}

func TestDiagnosisOfResources(t *testing.T) {
	for code, change := range map[string]func(*store.Stats){
		"producers-many": func(s *store.Stats) { s.NearMaxProducers = 2 },
		"disk-low":       func(s *store.Stats) { s.DiskFree, s.FreeBytes = 100<<20, 50<<20 },
		"commits-slow": func(s *store.Stats) {
			n := time.Now().Unix() // grows from event to event
			s.Commits, s.CommitNanos = n, n*int64(2*time.Second)
			s.CommitTimes[store.DurationBucket(2*time.Second)] = n
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, err := server.New(server.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Drain()
			s.Serve(statsStore{memory.Open(memory.Options{}), change})
			says(t, diagnosis(t, s), "attention", "", code)
		})
	}
}
