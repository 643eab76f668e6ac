package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// byteSize is a number of bytes, written as a number with or without a binary unit.
type byteSize int64

type byteUnit struct {
	name string
	size int64
}

// byteUnits are in order of size, so that a size is written in the one that suits it.
func byteUnits() []byteUnit {
	return []byteUnit{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}
}

// UnmarshalText reads "1048576", "1MiB" or "1024 KiB".
func (b *byteSize) UnmarshalText(text []byte) error {
	digits, factor := string(text), int64(1)
	for _, u := range byteUnits() {
		if rest, ok := strings.CutSuffix(digits, u.name); ok {
			digits, factor = strings.TrimSuffix(rest, " "), u.size
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/factor {
		return fmt.Errorf("%q is no number of bytes, such as 1048576, 64KiB or 16MiB", text)
	}
	*b = byteSize(n * factor)
	return nil
}

// String writes the size for people: exact when it is a whole number of a unit, else
// with one digit after the point.
func (b byteSize) String() string {
	for _, u := range byteUnits() {
		if int64(b) < u.size || u.size == 1 {
			continue
		}
		if int64(b)%u.size == 0 {
			return strconv.FormatInt(int64(b)/u.size, 10) + " " + u.name
		}
		return strconv.FormatFloat(float64(b)/float64(u.size), 'f', 1, 64) + " " + u.name
	}
	return strconv.FormatInt(int64(b), 10) + " B"
}
