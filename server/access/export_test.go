package access

// WithChecksum completes a token.
func WithChecksum(body string) string { return body + checksum(body) }
