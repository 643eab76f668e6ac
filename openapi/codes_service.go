package openapi

// serviceProblems are about a server that cannot serve right now.
func serviceProblems() []ProblemType {
	return []ProblemType{
		{
			Code: "overloaded", Status: 503, Title: "The write queue is full", Retryable: true, Outcome: NotApplied, RetryAfter: 1,
			Meaning:   "More appends wait for the disk than the server is willing to hold. The batch was turned away before it was queued.",
			Do:        "Send the same again after Retry-After, with a growing pause. Larger batches get more through.",
			RetrySafe: safeLater,
		},
		{
			Code: "storage-full", Status: 507, Title: "The storage is full", Retryable: true, Outcome: NotApplied,
			Meaning:   "The disk is full or below the reserve, or the store has reached its greatest size. Reads go on.",
			Do:        "The operator should free space: trim or delete topics, shorten their retention, or enlarge the disk. Appends work again by themselves then.",
			RetrySafe: safeLater,
		},
		{
			Code: "storage-failed", Status: 503, Title: "The storage has failed", Retryable: true, Outcome: Unknown, RetryAfter: 5,
			Meaning:   "A write or its fsync failed. Whether the batch is stored is not known, and the server takes no more writes until it is started again.",
			Do:        "The operator should look at the log and the disk, run oncelog check, and start the server again. Then send the same batch again.",
			RetrySafe: safeUnknown,
		},
		{
			Code: "commit-timeout", Status: 504, Title: "The commit was not confirmed in time", Retryable: true, Outcome: Unknown,
			Meaning:   "The batch was queued, but the disk has not confirmed it within the time allowed. It may yet be stored.",
			Do:        "Send the same sequence with the same records again: if it was stored, the answer is that of a duplicate.",
			RetrySafe: safeUnknown,
		},
		{
			Code: "not-ready", Status: 503, Title: "The server is starting", Retryable: true, Outcome: NotApplied, RetryAfter: 1,
			Meaning:   "The server listens, but is still opening its store.",
			Do:        "Send the same again after Retry-After.",
			RetrySafe: safeLater,
		},
		{
			Code: "draining", Status: 503, Title: "The server is shutting down", Retryable: true, Outcome: NotApplied, RetryAfter: 1,
			Meaning:   "The server finishes what it has begun and takes nothing new.",
			Do:        "Send the same again after Retry-After; the next start of the server takes it.",
			RetrySafe: safeLater,
		},
		{
			Code: "internal", Status: 500, Title: "Something went wrong inside the server", Retryable: true, Outcome: Unknown,
			Meaning:   "The server met an error that it does not know. Its log has the details under the request id.",
			Do:        "Report it with the requestId. Whether the request had an effect is not known.",
			RetrySafe: safeUnknown,
		},
	}
}
