package access

// WithChecksum completes a token.
func WithChecksum(body string) string { return body + checksum(body) }

// Parse reads the text of a file of grants.
func Parse(text []byte) ([]Grant, error) { return parse(text) }

// Format writes it.
func Format(grants []Grant) ([]byte, error) { return format(grants) }
