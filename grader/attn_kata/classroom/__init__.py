"""A class of attempts: many submissions graded in one run, with scores, a summary for the teacher and a page for each student.

`tree` reads a folder or a zip, `students` finds whose a file is, `submissions` which file is meant. `run` grades what is not yet
in the `store`, on this machine (`local`) or on a cluster (`cluster`). `summary`, `tables`, `pages` and `words` show what is in
the store. `bundles` writes what Gradescope and GitHub run.
"""
