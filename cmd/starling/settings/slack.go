package settings

import (
	"fmt"
	"time"

	"starling/jobspec"
)

func setSlack(c *Agent, texts []string) error {
	millis, err := jobspec.ParseDuration(texts[0], int64(24*time.Hour/time.Millisecond))
	if c.Slack = time.Duration(millis) * time.Millisecond; err == nil && c.Slack > 0 && c.Slack < time.Second {
		return fmt.Errorf("must be at least 1s, or 0 for none, is %s", texts[0])
	}
	return err
}
