"""All rewrites, in the order of their numbers."""

import table_canonical

TABLE = sorted([*table_canonical.REWRITES], key=lambda rewrite: int(rewrite.id[1:]))
