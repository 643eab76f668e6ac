//go:build !race

package producer_test

const raceDetector = false
