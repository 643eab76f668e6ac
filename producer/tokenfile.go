package producer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// WithTokenFile sends the bearer token in a file with every request. The file is looked
// at again at most once a second, so that a token can be replaced while the program
// runs. The last token that could be read is kept when it cannot.
func WithTokenFile(path string) ClientOption {
	f := &tokenFile{path: path}
	return WithTokenFunc(f.token)
}

// WithCAFile takes servers whose certificates come from the authorities in a PEM file,
// and no others.
func WithCAFile(path string) ClientOption {
	return clientOption(func(c *clientConfig) { c.caFile = path })
}

// loadCA puts the authorities of WithCAFile into the TLS configuration.
func (c *clientConfig) loadCA() error {
	if c.caFile == "" {
		return nil
	}
	text, err := os.ReadFile(c.caFile)
	if err != nil {
		return fmt.Errorf("producer: CA file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return fmt.Errorf("producer: CA file: %s holds no certificate in PEM", c.caFile)
	}
	if c.tls == nil {
		c.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	} else {
		c.tls = c.tls.Clone()
	}
	c.tls.RootCAs = pool
	return nil
}

// tokenFile is a token that may be replaced.
type tokenFile struct {
	path string

	mu   sync.Mutex
	last string
	read time.Time
}

func (f *tokenFile) token(context.Context) (string, error) {
	const age = time.Second
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last != "" && time.Since(f.read) < age {
		return f.last, nil
	}
	text, err := os.ReadFile(f.path)
	token := strings.TrimSpace(string(text))
	switch {
	case err == nil && token != "":
		f.last, f.read = token, time.Now()
	case f.last != "":
		f.read = time.Now()
	case err != nil:
		return "", err
	default:
		return "", errors.New(f.path + " is empty")
	}
	return f.last, nil
}
