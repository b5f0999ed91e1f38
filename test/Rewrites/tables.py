"""All rewrites, in the order of their numbers."""

import table_affine
import table_canonical
import table_constant
import table_fold
import table_fusions
import table_input
import table_kinds
import table_reshape
import table_sharing
import table_slice

FILES = [
    table_affine,
    table_canonical,
    table_constant,
    table_fold,
    table_fusions,
    table_input,
    table_kinds,
    table_reshape,
    table_sharing,
    table_slice,
]
TABLE = sorted((rewrite for file in FILES for rewrite in file.REWRITES),
               key=lambda rewrite: (rewrite.id[0], int(rewrite.id[1:])))
