package server_test

import (
	"bytes"
	"testing"

	"github.com/oncelog/oncelog/server"
)

// TestPlainText puts each byte at each place of groups and of what is left of them: many
// bytes are judged at once, and none may hide behind another.
func TestPlainText(t *testing.T) {
	for _, length := range []int{1, 7, 31, 32, 33, 41, 65} {
		for at := range length {
			for c := range 256 {
				for _, around := range []byte{' ', '~', '!', 0x80, 0xff, 0} {
					text := bytes.Repeat([]byte{around}, length)
					text[at] = byte(c)
					want := true
					for _, b := range text {
						want = want && b >= ' ' && b <= '~' && b != '"' && b != '\\'
					}
					if got := server.IsPlain(text); got != want {
						t.Fatalf("%q: %v, want %v", text, got, want)
					}
				}
			}
		}
	}
}
