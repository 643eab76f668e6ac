package openapi

// requestProblems are about the request itself, before any topic is looked at.
func requestProblems() []ProblemType {
	return []ProblemType{
		{
			Code: "malformed-request", Status: 400, Title: "The request is malformed", Outcome: NotApplied,
			Meaning:   "The body, a query parameter, a header or a number in the path cannot be read: bad JSON or UTF-8, an unknown or doubled member, trailing data, a member of the wrong type, a number that is negative, fractional, written with an exponent or above 2^53−1, pid, epoch and baseSeq not given together, or a body that ended early. The member errors names each place, as a JSON pointer into the body (line n of NDJSON is /records/n) or as the name of a parameter or header.",
			Do:        "Correct the request. If the body was cut off on its way, send the whole of it again.",
			RetrySafe: safeUnchanged,
		},
		{
			Code: "invalid-argument", Status: 422, Title: "The request asks for something that is not allowed", Outcome: NotApplied,
			Meaning:   "The request can be read, but a value in it breaks a rule: an empty list of records, a key or header that is too long, a timestamp outside the years 1970 to 9999, a topic name of other than 1 to 249 of A–Z a–z 0–9 . _ -, a setting out of its range, fewer partitions than there are, or sequences that would run past 2^53−1. The member errors names each place.",
			Do:        "Change the value that errors points to. GET /limits lists the limits.",
			RetrySafe: safeUnchanged,
		},
		{
			Code: "unsupported-media-type", Status: 415, Title: "The media type or content coding is not taken", Outcome: NotApplied,
			Meaning:   "The Content-Type cannot be parsed or is not one that this path takes, or the Content-Encoding is other than gzip, zstd or identity. Accept-Encoding in the answer lists the codings, Accept-Patch the types of a patch.",
			Do:        "Send one of the listed types and codings. Appends take application/json, application/x-ndjson, application/vnd.oncelog.batch, and anything else as the value of one record.",
			RetrySafe: safeUnchanged,
		},
		{
			Code: "too-large", Status: 413, Title: "The body, batch or record is too large", Outcome: NotApplied,
			Meaning:   "The decoded body is above the server's limit, the keys, values and headers of the batch are above the topic's maxBatchBytes, one record is above 1 MiB, or there are more than 65,536 records. limit is the bound that was broken; actual what was sent, or for a body how much had been read when it was given up.",
			Do:        "Send smaller batches. A producer must not split a batch whose outcome it does not know; this one is known not to have been stored.",
			RetrySafe: safeUnchanged,
		},
		{
			Code: "not-acceptable", Status: 406, Title: "None of the accepted media types can be given", Outcome: NotApplied,
			Meaning:   "The Accept header leaves no media type that this path can answer with.",
			Do:        "Reads of records answer application/json, application/x-ndjson and text/event-stream.",
			RetrySafe: safeUnchanged,
		},
		{
			Code: "not-found", Status: 404, Title: "There is nothing at this path", Outcome: NotApplied,
			Meaning:   "No operation has this path.",
			Do:        "Check the path against /openapi.json. An unknown topic, partition, producer or snapshot has a code of its own.",
			RetrySafe: safeUnchanged,
		},
		{
			Code: "method-not-allowed", Status: 405, Title: "The path does not take this method", Outcome: NotApplied,
			Meaning:   "The path exists, the method on it does not.",
			Do:        "Use one of the methods in the Allow header.",
			RetrySafe: safeUnchanged,
		},
		{
			Code: "headers-too-large", Status: 431, Title: "The request headers are too large", Outcome: NotApplied,
			Meaning:   "Names and values of all request headers together are above 64 KiB. Far beyond that the connection is answered with 431 and closed before the request is looked at.",
			Do:        "Send fewer or shorter headers; put long keys into a JSON or binary batch.",
			RetrySafe: safeUnchanged,
		},
		{
			Code: "version-mismatch", Status: 412, Title: "The topic is not at the version that was asked for", Outcome: NotApplied,
			Meaning:   "If-Match names an entity tag that is not that of the topic as it is now: somebody else changed it, or deleted it and created it again.",
			Do:        "Read the topic again, decide anew, and send the change with its new ETag.",
			RetrySafe: safeUnchanged,
		},
	}
}

// accessProblems are about who may do what. Only cross-origin is sent until access
// control is switched on.
func accessProblems() []ProblemType {
	return []ProblemType{
		{
			Code: "unauthenticated", Status: 401, Title: "Credentials are missing or not valid", Outcome: NotApplied,
			Meaning:   "The server asks for a bearer token, and the request has none or one that is unknown, expired or revoked.",
			Do:        "Send Authorization: Bearer with a valid token.",
			RetrySafe: safeUnchanged,
		},
		{
			Code: "forbidden", Status: 403, Title: "The credentials do not allow this", Outcome: NotApplied,
			Meaning:   "The token is valid, but its scopes or topic prefixes do not cover the operation, or the producer id was issued to somebody else.",
			Do:        "Use a token with the scope, or a producer id of your own.",
			RetrySafe: safeUnchanged,
		},
		{
			Code: "rate-limited", Status: 429, Title: "The caller's quota is spent", Retryable: true, Outcome: NotApplied, RetryAfter: 1,
			Meaning:   "The caller has used up its quota of requests or bytes for now.",
			Do:        "Wait for as long as Retry-After says, then send the same again.",
			RetrySafe: safeLater,
		},
		{
			Code: "cross-origin", Status: 403, Title: "A page of another origin may not change state", Outcome: NotApplied,
			Meaning:   "A browser sent this request on behalf of a page from another origin, by Sec-Fetch-Site or Origin, and the request would change something. This keeps pages that a user happens to visit from writing to a server that the user's browser can reach.",
			Do:        "Call from the same origin or from a program that is not a browser, or start the server with --cors-origin for the page's origin.",
			RetrySafe: safeUnchanged,
		},
	}
}
