package openapi

import "slices"

// ProblemType describes one problem code: what every problem of that code says, and
// what the page under /problems/{code} tells the reader.
type ProblemType struct {
	Code string
	// Status is the HTTP status of every answer with this code.
	Status int
	Title  string
	// Retryable: the same request, unchanged, may succeed later.
	Retryable bool
	Outcome   Outcome
	// RetryAfter is the value of the Retry-After header in seconds, 0 for none.
	RetryAfter int
	// Meaning is a paragraph on what has happened.
	Meaning string
	// Do says what a client or its operator should do.
	Do string
	// RetrySafe says whether sending the same request again can do harm.
	RetrySafe string
}

// Path is the address of the page about the problem, which is also the problem's type
// (RFC 9457 section 3.1.1).
func (p *ProblemType) Path() string { return "/problems/" + p.Code }

// ProblemTypes returns the closed list of problem types, in the order of their codes.
func ProblemTypes() []ProblemType {
	all := slices.Concat(requestProblems(), topicProblems(), sequenceProblems(), serviceProblems(), accessProblems())
	slices.SortFunc(all, func(a, b ProblemType) int {
		if a.Code < b.Code {
			return -1
		}
		return 1 // codes are unique
	})
	return all
}

// LookupProblemType returns the type of a code. It goes through the whole list; a
// server that answers many problems keeps a map of its own.
func LookupProblemType(code string) (ProblemType, bool) {
	for _, p := range ProblemTypes() {
		if p.Code == code {
			return p, true
		}
	}
	return ProblemType{}, false
}

const (
	safeUnchanged = "Safe but useless: nothing was changed, and the same request will be refused again."
	safeLater     = "Safe: nothing was changed. Send the same request again after a pause."
	safeUnknown   = "Safe for an idempotent append (pid, epoch, baseSeq): send exactly the same batch again, and it is stored once. A plain append may be stored twice."
)
