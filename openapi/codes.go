package openapi

import (
	"cmp"
	"slices"
)

// ProblemType describes one problem code: what every problem of that code says, and
// what the page under /problems/{code} tells the reader.
//
// Meaning, Do and RetrySafe are for people with curl. They are paragraphs, one a line; a
// line that begins with "- " is an item of a list; what stands between backquotes is
// code.
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
	// Meaning is what has happened.
	Meaning string
	// Do says what a client or its operator should do.
	Do string
	// RetrySafe says whether sending the same request again can do harm.
	RetrySafe string
	// Example has what differs between two problems of the code: detail, instance and
	// the members that only some codes have. Use [ProblemType.Sample].
	Example Problem
}

// Path is the address of the page about the problem, which is also the problem's type
// (RFC 9457 section 3.1.1).
func (p *ProblemType) Path() string { return "/problems/" + p.Code }

// Sample is a problem of this type as a server would send it.
func (p *ProblemType) Sample() Problem {
	s := p.Example
	s.Type, s.Title, s.Status, s.Code = p.Path(), p.Title, p.Status, p.Code
	s.Retryable, s.Outcome = p.Retryable, p.Outcome
	s.RequestID = "0b5c1f2e9d7a4c33"
	return s
}

// ProblemGroup is a part of the list of problem types.
type ProblemGroup struct {
	Name  string // a heading
	Types []ProblemType
}

// ProblemGroups returns the closed list of problem types for people to read: what
// belongs together stands together.
func ProblemGroups() []ProblemGroup {
	return []ProblemGroup{
		{"Producers and sequences", slices.Concat(sequenceProblems(), producerProblems())},
		{"Topics, partitions and offsets", slices.Concat(topicProblems(), offsetProblems())},
		{"The request", slices.Concat(requestProblems(), headProblems())},
		{"Access", accessProblems()},
		{"The server", serviceProblems()},
	}
}

// ProblemTypes returns the same list in the order of the codes.
func ProblemTypes() []ProblemType {
	var all []ProblemType
	for _, g := range ProblemGroups() {
		all = append(all, g.Types...)
	}
	slices.SortFunc(all, func(a, b ProblemType) int { return cmp.Compare(a.Code, b.Code) })
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
	safeUnchanged = "Safe, but no help: nothing was changed, and the same request is refused again until its cause is gone."
	safeLater     = "Safe: nothing was changed. Send the same request again after a pause."
	safeUnknown   = "Safe for an append with `pid`, `epoch` and `baseSeq`: send exactly the same batch again, and it is stored once, whatever became of the first. " +
		"An append without them may be stored twice."
)

// Paths of requests in examples.
const (
	atAppend = "/topics/orders/partitions/0/batches"
	atRead   = "/topics/orders/partitions/0/records"
	atTopic  = "/topics/orders"
)

// about is the example of a problem that has no members of its own.
func about(instance, detail string) Problem { return Problem{Instance: instance, Detail: detail} }
