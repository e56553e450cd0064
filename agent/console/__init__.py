"""Flows: the same job files without a browser, where the steps allow it.

`host.FlowHost` is the way in, and `run.run_plan` runs the steps of one attempt. `verbs.VERBS` says
which coroutine does which step. A `Flow` is what one attempt has: a client (`fetching`) with
cookies of its own, and the page that was read last (`page`), which `reading` takes values from by
the same grammar as `agent/steps/extract.js` does in a tab.

Nothing of a flow outlives its attempt, so there is nothing to be cleaned. What a browser would do
with scripts and styles does not happen: a step that would need it fails as `needs_browser`.
"""
