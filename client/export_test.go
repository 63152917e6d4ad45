package client

// Bounds lowers the limits on a run's rows and input bytes, which are too large to reach in a test.
func Bounds(rows, bytes int64) StartOption {
	return startOption(func(c *startConfig) { c.maxRows, c.maxBytes = rows, bytes })
}
