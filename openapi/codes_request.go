package openapi

// requestProblems are about what a request carries, before any topic is looked at.
func requestProblems() []ProblemType {
	return []ProblemType{
		{
			Code: "malformed-request", Status: 400, Title: "The request is malformed", Outcome: NotApplied,
			Meaning: "The server cannot read the request: the body, the query, a header or a number in the path does not have the form that it must have. " +
				"`errors` names each place and what is wrong there. A `pointer` is a JSON pointer into the body, `/records/0/value` for the value of the first record " +
				"(in NDJSON the first line is `/records/0`), or a slash and the name of a parameter or header.",
			Do: "Correct what `errors` points to. What it usually is:\n" +
				"- The shell has changed the body. Put it in single quotes, or in a file that you send with `--data-binary @file`; curl's `-d @file` removes line ends.\n" +
				"- A member that does not exist here, or the same one twice. Names are case-sensitive.\n" +
				"- Only one or two of `pid`, `epoch` and `baseSeq`. They come together or not at all.\n" +
				"- A record with none, or more than one, of `value`, `valueText` and `valueBase64`.\n" +
				"- A number that is negative, has a fraction or an exponent, or is above 9007199254740991 (2^53 − 1).\n" +
				"- A body that was cut off on its way. Then send the whole of it again.",
			RetrySafe: safeUnchanged,
			Example: Problem{
				Instance: atAppend, Detail: "/records/0: must have exactly one of value, valueText and valueBase64",
				Errors: []MemberError{{Pointer: "/records/0", Detail: "must have exactly one of value, valueText and valueBase64"}},
			},
		},
		{
			Code: "invalid-argument", Status: 422, Title: "The request asks for something that is not allowed", Outcome: NotApplied,
			Meaning: "The request can be read, but a value in it breaks a rule: no records in a batch, a key or header that is too long, a timestamp outside the years 1970 to 9999, " +
				"a topic name that is not 1 to 249 of A–Z, a–z, 0–9, `.`, `_` and `-`, a setting out of its range, fewer partitions than there are, or sequences that would run past 2^53 − 1. " +
				"`errors` names each place and what is allowed there.",
			Do:        "Change the values that `errors` points to. `GET /limits` lists the limits of this server.",
			RetrySafe: safeUnchanged,
			Example: Problem{
				Instance: atAppend, Detail: "/records: must hold at least one record",
				Errors: []MemberError{{Pointer: "/records", Detail: "must hold at least one record"}},
			},
		},
		{
			Code: "unsupported-media-type", Status: 415, Title: "The media type or content coding is not taken", Outcome: NotApplied,
			Meaning: "`Content-Type` is missing, cannot be read, or names a type that this path does not take; or `Content-Encoding` is something other than `gzip`, `zstd` or `identity`.",
			Do: "Say what you send. curl calls every body `application/x-www-form-urlencoded` unless you add `-H 'Content-Type: application/json'`. " +
				"When it is the coding, `Accept-Encoding` in the answer lists what is taken; when it is the type of a PATCH, `Accept-Patch` does.\n" +
				"Appends take `application/json`, `application/x-ndjson`, `application/vnd.oncelog.batch`, and any other type as the value of one record.",
			RetrySafe: safeUnchanged,
			Example:   about("/topics", "the body must be application/json, and Content-Type must say so"),
		},
		{
			Code: "too-large", Status: 413, Title: "The body, batch or record is too large", Outcome: NotApplied,
			Meaning: "One of four bounds was broken: the body, decompressed, is larger than the server takes; the keys, values and headers of the batch are more than the topic's `maxBatchBytes`; " +
				"one record has more than 1 MiB; or there are more than 65,536 records. `limit` is the bound, in bytes or in records, and `actual` is what was sent, " +
				"or how much of a body had been read when the server gave up.",
			Do: "Send smaller batches. This batch is known not to be stored, so its records may be cut into smaller ones, the first of them with the same `baseSeq`. " +
				"Never cut up a batch whose outcome is not known.\n" +
				"For larger batches raise the topic's `maxBatchBytes` with PATCH, at most to 8 MiB.",
			RetrySafe: safeUnchanged,
			Example: Problem{
				Instance: atAppend, Detail: "the batch has 1258291 bytes of keys, values and headers, the topic's maxBatchBytes is 1048576",
				Limit: new(int64(1048576)), Actual: new(int64(1258291)),
			},
		},
	}
}

// headProblems are about the path, the method and the headers of a request.
func headProblems() []ProblemType {
	return []ProblemType{
		{
			Code: "not-acceptable", Status: 406, Title: "None of the accepted media types can be given", Outcome: NotApplied,
			Meaning:   "The `Accept` header leaves no media type in which this path can answer.",
			Do:        "Leave the header away, or accept one of these. Records come as `application/json`, `application/x-ndjson`, `text/event-stream` and `application/vnd.oncelog.batch`.",
			RetrySafe: safeUnchanged,
			Example:   about(atRead, "records come as application/json, application/x-ndjson, text/event-stream or application/vnd.oncelog.batch"),
		},
		{
			Code: "not-found", Status: 404, Title: "There is nothing at this path", Outcome: NotApplied,
			Meaning: "The server knows no such path. A topic, partition, producer or snapshot that does not exist has a code of its own, so this is about the path as such.",
			Do: "Compare the path with those on the API page, `/docs`: is it plural (`/topics`), without a slash at the end, with `partitions` and `batches` spelled out? " +
				"A slash inside a name is written `%2F`.",
			RetrySafe: safeUnchanged,
			Example:   about("/topic/orders", "nothing is at /topic/orders"),
		},
		{
			Code: "method-not-allowed", Status: 405, Title: "The path does not take this method", Outcome: NotApplied,
			Meaning:   "The path exists, but not with this method.",
			Do:        "Use one of the methods that the `Allow` header of the answer lists; `curl -i` shows it. curl sends GET, and POST as soon as there is a `-d`; `-X` names any other.",
			RetrySafe: safeUnchanged,
			Example:   about(atAppend, "DELETE is not allowed here"),
		},
		{
			Code: "headers-too-large", Status: 431, Title: "The request headers are too large", Outcome: NotApplied,
			Meaning: "The path and the names and values of all request headers have more than 64 KiB together. " +
				"Far above that the connection is closed before the request is looked at, and the answer is a plain 431 without this problem.",
			Do:        "Send fewer or shorter headers. Put long record keys into a JSON, NDJSON or binary batch.",
			RetrySafe: safeUnchanged,
			Example:   about(atAppend, "the headers are longer than the 65536 bytes that are allowed"),
		},
		{
			Code: "version-mismatch", Status: 412, Title: "The topic is not at the version that was asked for", Outcome: NotApplied,
			Meaning:   "`If-Match` in the request names an `ETag` that the topic no longer has: somebody has changed it since you read it, or has deleted it and created it again.",
			Do:        "Read the topic again, decide again, and send the change with the new `ETag`.",
			RetrySafe: safeUnchanged,
			Example:   about(atTopic, "the topic is at \"6f1d0b2a9c3e4d58-2\""),
		},
	}
}

// accessProblems are about who may do what.
func accessProblems() []ProblemType {
	return []ProblemType{
		{
			Code: "unauthenticated", Status: 401, Title: "Credentials are missing or not valid", Outcome: NotApplied,
			Meaning:   "The server asks who you are. The request has no token, or one that is unknown, expired or revoked; or its client certificate is not valid any more.",
			Do:        "Send a token: `curl -H \"Authorization: Bearer $TOKEN\" …`. Whoever runs the server can make one for you with `oncelog token create`.",
			RetrySafe: safeUnchanged,
			Example:   about(atAppend, "a bearer token is needed: Authorization: Bearer oncelog_…"),
		},
		{
			Code: "forbidden", Status: 403, Title: "The caller may not do this", Outcome: NotApplied,
			Meaning: "The server knows who you are, and this is not allowed to you:\n" +
				"- the token lacks the scope (`produce`, `consume` or `admin`), or the topic is not among its prefixes;\n" +
				"- the producer id was issued to somebody else;\n" +
				"- the server was asked for by a host name that is not its own, as a page of another site would do.",
			Do: "`detail` says which of these it is. Use a token that has the scope; take a producer id of your own with `POST /producers`; " +
				"ask for the server by an address that it knows, or have it started with `--allow-host` for the name.",
			RetrySafe: safeUnchanged,
			Example:   about(atAppend, "producer id 7 was issued to somebody else; POST /producers issues one of your own"),
		},
		{
			Code: "rate-limited", Status: 429, Title: "The caller's quota is spent", Retryable: true, Outcome: NotApplied, RetryAfter: 1,
			Meaning:   "You may send so many requests and bytes a second, take so many producer ids an hour, and have so many batches wait for their predecessors at a time. One of these is used up; `detail` says which.",
			Do:        "Wait for as many seconds as `Retry-After` says, then send the same again. `curl --retry 10` does so by itself. Larger batches need fewer requests.",
			RetrySafe: safeLater,
			Example:   about(atAppend, "the quota of 100 requests a second is used up"),
		},
		{
			Code: "cross-origin", Status: 403, Title: "A page of another origin may not change anything", Outcome: NotApplied,
			Meaning: "A browser sent this request for a page that comes from another origin (`Sec-Fetch-Site` or `Origin` say so), and it would change something. " +
				"This keeps pages that you happen to visit from writing to servers that your browser can reach.",
			Do:        "If the page is yours, start the server with `--cors-origin` and the page's origin, such as `https://shop.example`. Programs other than browsers are not concerned.",
			RetrySafe: safeUnchanged,
			Example:   about(atAppend, "a page of another origin may not change anything here"),
		},
	}
}
