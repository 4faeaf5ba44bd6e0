//go:build nextrules

package peer

import "starling/terms/rules"

// RulesNewest is the newest version of the rules by which this program folds. It is built so to try mixed versions.
const RulesNewest = rules.Next
