"""Where a report gets its scores from: a selection, finished or running, or a table of scores. Read only."""
