"""Random programs, run on every path and held against the oracle.

    generate   programs from seeds          execute   the paths, and what may differ
    program    what they are made of        evaluate  what each result may be
    damage     broken IR                    shrink    smaller programs that still fail
    server     a norm-fuzz process
"""
