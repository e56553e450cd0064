"""Where the work of a job may go, whatever does it: a browser's proxy, or a flow's own requests.

`policy` judges names and addresses; `resolving` gives the addresses of a host that the policy has
seen, which are the only ones that may be connected to.
"""
