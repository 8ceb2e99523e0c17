package orderhttp

import (
	"fmt"
	"time"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/order"
)

// lesson is what a teaching request chooses.
type lesson struct {
	strategy string
	think    time.Duration
}

// lesson reads the teaching headers.
func (a *api) lesson(c *gin.Context) (lesson, error) {
	strategy, err := a.labHeader(c, headerStrategy)
	if err != nil {
		return lesson{}, err
	}
	text, err := a.labHeader(c, headerThink)
	if err != nil || text == "" {
		return lesson{strategy: strategy}, err
	}
	think, err := time.ParseDuration(text)
	if err != nil {
		return lesson{}, fmt.Errorf("%w: %s %.40q: want a duration such as 2ms, at most %v",
			errMalformed, headerThink, text, order.MaxThinking)
	}
	return lesson{strategy: strategy, think: think}, nil
}

// labHeader returns the value of a teaching header, empty if it is absent.
func (a *api) labHeader(c *gin.Context, name string) (string, error) {
	value, given, err := header(c, name)
	switch {
	case err != nil || !given:
		return "", err
	case !a.Lab:
		return "", fmt.Errorf("%w: leave out %s, or %s", errLabHeader, name, howToSwitchOn)
	case value == "":
		return "", fmt.Errorf("%w: header %s is empty", errMalformed, name)
	}
	return value, nil
}
