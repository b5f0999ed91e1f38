"""Times row norms beside copies of the same bytes and beside other libraries, in one process.

    suite     which norms of which shapes, and the bytes that each must move
    buffers   their arrays, and what the oracle says of them
    native    what is compiled here: the roof, and the programs of this project
    peers     other libraries, one adapter each
    timing    interleaved rounds and their medians
    session   verifies and times the lanes of a case
    accuracy  errors against the mean of a row
    report    tables and records
    plots     pictures
    page      docs/Performance.md
"""
