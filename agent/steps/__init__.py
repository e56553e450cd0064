"""What each verb does on a page.

`run.run_plan` is the way in. `verbs.VERBS` says which coroutine does which verb; the coroutines
live by group in `navigation`, `pointer`, `forms`, `waiting`, `artifacts`, `scripting` and `extract`
(with `extract.js`, `records`, `numbers`, `pagination`). What all of them work with is `stage`: the
step's clock and the journal of effects. `selectors` and `substitution` read what people write,
`failures` what Playwright raises; `observed` watches for unsafe requests, `capture` keeps what a
failure looked like.
"""
