package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
)

// A token is tokenPrefix, an id, a secret and a checksum, the last three in the alphabet
// of base32 (RFC 4648): oncelog_[A-Z2-7]{43}. Prefix and checksum let secret scanners find
// tokens that have leaked, without asking anybody; the id names the token in lists and
// logs, and is no secret.
const (
	tokenPrefix = "oncelog_"
	idLength    = 10
	// secretLength is 26 characters of 5 bits: 130 random bits.
	secretLength   = 26
	checksumLength = 7
	tokenLength    = len(tokenPrefix) + idLength + secretLength + checksumLength
)

var errToken = errors.New("not a token of oncelog, or mistyped")

// Hash is the SHA-256 of a token, which is all that is kept of it. A slow hash would add
// nothing: it makes guessing dear where a secret has few bits, as passwords have, and
// here 130 random bits are out of reach for any number of guesses. It would make each
// request slow instead, and so be an attack in itself.
type Hash [sha256.Size]byte

// newToken makes a token with a new secret.
func newToken() (token, id string, h Hash) {
	id = rand.Text()[:idLength]
	body := tokenPrefix + id + rand.Text()[:secretLength]
	token = body + checksum(body)
	return token, id, Hash(sha256.Sum256([]byte(token)))
}

func checksum(body string) string {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.ChecksumIEEE([]byte(body)))
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:])
}

// tokenID returns the id of a token whose checksum is right.
func tokenID(token string) (string, error) {
	if len(token) != tokenLength || !strings.HasPrefix(token, tokenPrefix) {
		return "", errToken
	}
	body, sum := token[:tokenLength-checksumLength], token[tokenLength-checksumLength:]
	if checksum(body) != sum {
		return "", errToken
	}
	return body[len(tokenPrefix):][:idLength], nil
}

// matches compares in a time that does not depend on where the two differ.
func (h *Hash) matches(token string) bool {
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(h[:], sum[:]) == 1
}

// MarshalText writes hexadecimal digits.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText reads hexadecimal digits.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(h)) {
		return fmt.Errorf("a hash has %d hexadecimal digits", hex.EncodedLen(len(h)))
	}
	_, err := hex.Decode(h[:], text)
	return err
}
