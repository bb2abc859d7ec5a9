"""A class of attempts: many submissions graded in one run, with scores, a summary for the teacher and a page for each student.

`tree` reads a folder or a zip, `students` finds whose a file is, `submissions` which file is meant. `run` grades what is
not yet in the `store`, on this machine (`local`) or on a cluster (`cluster`). `outputs` writes what `tables` and `pages` make
of the store, and `words` is the summary for a terminal. `bundles` writes what Gradescope and GitHub run.
"""
