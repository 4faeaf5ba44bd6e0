//go:build !nextrules

package peer

import "starling/terms/rules"

// RulesNewest is the newest version of the rules by which this program folds.
const RulesNewest = rules.Released
