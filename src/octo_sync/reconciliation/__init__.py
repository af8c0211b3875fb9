"""Comparing this copy with another system's rows: pure, in memory, with exact arithmetic.

`model` the nouns · `sides` both sides as tables · `matching` which rows belong together · `comparing` what differs in a pair ·
`items` what a person looks at · `naming` what that is called · `reasons` and `alone` why, in a sentence · `rows` what single
rows say · `totals` the money, explained to zero · `limits` what fails a run · `engine` puts it together.
"""
