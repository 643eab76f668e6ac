package openapi

// serviceProblems are about a server that cannot serve right now.
func serviceProblems() []ProblemType {
	return []ProblemType{
		{
			Code: "overloaded", Status: 503, Title: "The server has too much to do at the moment", Retryable: true, Outcome: NotApplied, RetryAfter: 1,
			Meaning: "There are bounds to what waits and to what is held in memory, and one of them is reached. `detail` says which:\n" +
				"- more appends wait for the disk than the server is willing to hold;\n" +
				"- the bodies on their way in, or the answers on their way out, take all of the memory that there is for them; a client that takes its time is turned away first;\n" +
				"- another backup is being taken.\n" +
				"Nothing of this request was stored.",
			Do: "Send the same again after `Retry-After` seconds, with a pause that grows from try to try; `curl --retry 10` does that. " +
				"Larger batches get more records through: each commit to disk takes about the same time however much is in it.",
			RetrySafe: safeLater,
			Example:   about(atAppend, "too many appends are waiting to be written"),
		},
		{
			Code: "storage-full", Status: 507, Title: "The storage is full", Retryable: true, Outcome: NotApplied,
			Meaning: "The disk is full or has less free space than the server keeps in reserve (`--disk-reserve`), or the store has reached its greatest size (`--max-store-bytes`). " +
				"Reading goes on, and a batch that is stored already is still answered as a duplicate.",
			Do: "Keep the batch and try again from time to time. Whoever runs the server makes room: trim or delete topics, give them a retention, or enlarge the disk. " +
				"Appends then work again by themselves.",
			RetrySafe: safeLater,
			Example:   about(atAppend, "the space for records is used up; delete or trim topics, or make room on the disk"),
		},
		{
			Code: "storage-failed", Status: 503, Title: "The storage has failed", Retryable: true, Outcome: Unknown, RetryAfter: 5,
			Meaning: "A write to disk failed, or the disk did not confirm it. Whether this batch is stored is not known. " +
				"The server takes no more writes until it has been started again, because after such a failure nobody can say what is on the disk.",
			Do: "Keep the batch, and send it again unchanged once the server is back. " +
				"Whoever runs the server looks at its log and at the disk, runs `oncelog check`, and starts it again.",
			RetrySafe: safeUnknown,
			Example:   about(atAppend, "a write to disk failed; the server takes no writes until it has been restarted"),
		},
		{
			Code: "commit-timeout", Status: 504, Title: "The commit was not confirmed in time", Retryable: true, Outcome: Unknown,
			Meaning:   "The batch was queued, but the disk has not confirmed it within the time allowed. It may be stored by now, or later, or not at all.",
			Do:        "Send exactly the same batch again, with the same `pid`, `epoch` and `baseSeq`. If it was stored, the answer says `\"duplicate\": true` and gives its offsets.",
			RetrySafe: safeUnknown,
			Example:   about(atAppend, "the commit was not confirmed within 30s"),
		},
		{
			Code: "not-ready", Status: 503, Title: "The server is starting", Retryable: true, Outcome: NotApplied, RetryAfter: 1,
			Meaning:   "The server listens already, but is still opening its store. That takes moments, or longer after a crash.",
			Do:        "Send the same again after `Retry-After` seconds. `GET /readyz` answers 200 when the server is ready.",
			RetrySafe: safeLater,
			Example:   about("/topics", "the server is opening its store"),
		},
		{
			Code: "draining", Status: 503, Title: "The server is shutting down", Retryable: true, Outcome: NotApplied, RetryAfter: 1,
			Meaning:   "The server finishes what it has begun, and takes nothing new.",
			Do:        "Send the same again after `Retry-After` seconds, until the server has been started again. `curl --retry 10 --retry-connrefused` also sits out the time in which nobody listens.",
			RetrySafe: safeLater,
			Example:   about(atAppend, "the server is shutting down"),
		},
		{
			Code: "internal", Status: 500, Title: "Something went wrong inside the server", Retryable: true, Outcome: Unknown,
			Meaning:   "The server met an error that it does not know: a fault in the program. Whether the request had an effect is not known.",
			Do:        "For an append with a producer id, send the same batch again. If it keeps failing, give `requestId` to whoever runs the server: its log has the cause under that id.",
			RetrySafe: safeUnknown,
			Example:   about(atAppend, "the server's log has the details under the request id"),
		},
	}
}
